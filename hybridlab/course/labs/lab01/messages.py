"""The coding task ("build") ``messages`` of lab 1: how a student's list is read, known mistakes, changes of the task ("twists").

A training step of a mesh sends activations and their gradients along the pipelines, and the messages of the ring all-reduces.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np

from hybridlab.checks import known_name, short_repr
from hybridlab.course.checking.answers import Unordered, plain_values, require_count, require_text
from hybridlab.course.checking.builds import KnownMistake
from hybridlab.course.checking.maps import ChangeInCase, Map, each_number, exchanged, like, of_value, refuse
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.errors import HybridLabError
from hybridlab.mesh import Mesh

Message = tuple[int, int, str]  # from rank, to rank, kind
KINDS = ("activation", "gradient", "ring")
NOTEBOOK = (3, 4, 6)  # K, D and M in the cells of the lab
MOST_MESSAGES = 20_000  # the most messages that are read from a student's result


def messages_of(mesh: Mesh, microbatches: int) -> Counter[Message]:
    """Return each message of a training step with the number of times that the step sends it."""
    along = [link for replica in range(mesh.replicas) for link in pairwise(mesh.pipeline(replica))]
    around = [link for stage in range(mesh.stages) for link in mesh.ring(stage)]
    sent = Counter({(*link, "activation"): microbatches for link in along})
    sent |= Counter({(receiver, sender, "gradient"): microbatches for sender, receiver in along})
    return sent | Counter({(*link, "ring"): 2 * (mesh.replicas - 1) for link in around})


def read_messages(result: Any) -> list[Message]:
    """Return the sorted messages that a student's function returned.

    The function may return a list of messages, or a dict (such as a ``Counter``) from each message to its number.
    """
    if isinstance(result, (set, frozenset)):
        raise HybridLabError(
            "the function returns a set, which keeps equal messages only once; a step sends some messages several times: return a list",
            "set",
        )
    if isinstance(result, dict):
        if any(isinstance(count, (list, tuple, dict, set, str)) for count in result.values()):
            raise HybridLabError(f"the function returns one list of messages (from, to, kind), not {short_repr(result)}", "not-a-list")
        counts = [(each, require_count(plain_values(count), "a number of equal messages", least=0)) for each, count in result.items()]
    elif isinstance(result, (list, tuple)) or (isinstance(result, np.ndarray) and result.ndim):
        counts = [(each, 1) for each in result]
    else:
        raise HybridLabError(f"the function returns a list of messages (from, to, kind), not {short_repr(result)}", "not-a-list")
    total = sum(count for _, count in counts)
    if total > MOST_MESSAGES:
        raise HybridLabError(f"the function returns {total:,} messages; the check reads at most {MOST_MESSAGES:,}", "too-large")
    return sorted(message for each, count in counts for message in [_read_message(each)] * count)


def _read_message(value: Any) -> Message:
    if type(value) is tuple and [*map(type, value)] == [int, int, str] and min(value[:2]) >= 0 and value[2] in KINDS:
        return value  # without the slow checks below: there are thousands of messages
    parts = plain_values(tuple(value) if isinstance(value, tuple) else value)
    wanted = f"a message is (from, to, kind), such as (0, 1, 'ring'), not {short_repr(value)}"
    if isinstance(parts, list) and (not parts or isinstance(parts[0], list)):
        raise HybridLabError(f"{wanted}: your list contains another list; `+=` adds the messages of a list one by one", "list-in-a-list")
    if not isinstance(parts, list) or isinstance(parts, Unordered) or len(parts) != 3 or any(isinstance(rank, str) for rank in parts[:2]):
        raise HybridLabError(wanted, "wrong-shape")
    sender, receiver = (require_count(rank, "a rank", "7", least=0) for rank in parts[:2])
    return sender, receiver, known_name(require_text(parts[2], "a kind of message", "ring"), KINDS, "kind of message")


def _changing(
    code: str,
    sentence: str,
    changed: Callable[[Message, int, Mesh, int], dict[Message, int]],
    under: Mapping[str, str | None] | None = None,
) -> KnownMistake:
    """Return the known mistake of a program that sends wrong messages in place of right ones.

    ``changed`` takes a right message, its count, the mesh and the number of microbatches. It returns the messages that the program
    sends in place of the right message, with their counts.
    """

    def sent(stages: int, replicas: int, microbatches: int) -> Counter[Message]:
        mesh = Mesh(stages, replicas)
        wrong_messages: Counter[Message] = Counter()
        for message, count in messages_of(mesh, microbatches).items():
            wrong_messages.update(changed(message, count, mesh, microbatches))
        return wrong_messages

    return KnownMistake(code, sentence, sent, under or {})


def _rings(code: str, sentence: str, count: Callable[[int, int], int]) -> KnownMistake:
    """Return the known mistake that each rank sends a wrong number of ring messages. With one replica a rank sends them to itself."""

    def sent(stages: int, replicas: int, microbatches: int) -> Counter[Message]:
        mesh = Mesh(stages, replicas)
        rings = {(rank, (rank + stages) % mesh.size, "ring"): count(replicas, microbatches) for rank in range(mesh.size)}
        return Counter({message: n for message, n in messages_of(mesh, microbatches).items() if message[2] != "ring"} | rings)

    return KnownMistake(code, sentence, sent)


def _stages_first(message: Message, count: int, mesh: Mesh, microbatches: int) -> dict[Message, int]:
    sender, receiver = (place.stage * mesh.replicas + place.replica for place in map(mesh.coordinates, message[:2]))
    return {(sender, receiver, message[2]): count}


def _with_one_more_boundary(message: Message, count: int, mesh: Mesh, microbatches: int) -> dict[Message, int]:
    """Return the message and its count. If it is between the last two stages, add one between the last stage and stage 0."""
    sender, receiver, kind = message
    if kind != "ring" and max(message[:2]) % mesh.stages == mesh.stages - 1:
        back = mesh.stages - 1
        more = (receiver, receiver - back, kind) if kind == "activation" else (sender - back, sender, kind)
        return {message: count, more: count}
    return {message: count}


def _running_on(stages: int, replicas: int, microbatches: int) -> Counter[Message]:
    """Return the messages of pipelines that go on from the last stage of a replica to stage 0 of the next replica."""
    sent = messages_of(Mesh(stages, replicas), microbatches)
    for last in range(stages - 1, stages * replicas - 1, stages):
        sent.update({(last, last + 1, "activation"): microbatches, (last + 1, last, "gradient"): microbatches})
    return sent


def _in_replica_0(kinds: Sequence[str]) -> KnownMistake:
    """Return the known mistake that the messages of some kinds go only between ranks of replica 0."""

    def changed(message: Message, count: int, mesh: Mesh, microbatches: int) -> dict[Message, int]:
        sender, receiver, kind = message
        return {(sender % mesh.stages, receiver % mesh.stages, kind) if kind in kinds else message: count}

    sentence = "your messages of all replicas go between ranks of replica 0: the number of a rank also depends on its replica"
    return _changing("all-in-replica-0", sentence, changed)


def _sizes_of_the_notebook(stages: bool, replicas: bool, microbatches: bool) -> KnownMistake:
    """Return the known mistake that a program uses sizes of the notebook in place of some of its arguments."""
    fixed = [size if own else None for size, own in zip(NOTEBOOK, (stages, replicas, microbatches), strict=True)]

    def sent(*sizes: int) -> Counter[Message]:
        stages, replicas, microbatches = (size or given for size, given in zip(fixed, sizes, strict=True))
        return messages_of(Mesh(stages, replicas), microbatches)

    sentence = "your function takes 3 stages, 4 replicas or 6 microbatches: use its arguments, not K, D and M of the notebook"
    return KnownMistake("sizes-of-the-notebook", sentence, sent)


MISTAKES: Sequence[KnownMistake] = (
    KnownMistake(
        "arguments-exchanged",
        "you take stages for replicas, and replicas for stages: the first argument is the number of stages",
        lambda stages, replicas, microbatches: messages_of(Mesh(replicas, stages), microbatches),
    ),
    _changing(
        "stages-first",
        "you have numbered stage by stage: rank = replica x K + stage, not stage x D + replica",
        _stages_first,
        {
            "stage-by-stage": None,
            "last-stage-first": None,
            "counted-down": "you have numbered stage by stage: rank = K x D - 1 - (replica x K + stage)",
        },
    ),
    _changing(
        "no-way-back",
        "your result lacks the gradients of activations, which go back from stage to stage",
        lambda m, n, mesh, _: {} if m[2] == "gradient" else {m: n},
    ),
    _changing(
        "one-pipeline-alone",
        "in your result only the pipeline of replica 0 sends: each replica has a pipeline of its own",
        lambda m, n, mesh, _: {} if m[2] != "ring" and max(m[:2]) >= mesh.stages else {m: n},
    ),
    _changing(
        "one-ring-alone",
        "in your result only the ring of stage 0 sends: each stage has a ring of its own",
        lambda m, n, mesh, _: {} if m[2] == "ring" and m[0] % mesh.stages else {m: n},
    ),
    _changing(
        "microbatches-forgotten",
        "each microbatch causes an activation and a gradient of its own",
        lambda m, n, mesh, _: {m: n if m[2] == "ring" else 1},
    ),
    _changing(
        "each-pair-once",
        "you return each message once: how many equal messages does a rank send to its neighbour?",
        lambda m, n, *_: {m: 1},
        {"counted": "you count each message once: how many equal messages does a rank send to its neighbour?"},
    ),
    _changing(
        "microbatches-shared",
        "M is the number of microbatches of one replica: do not divide it by D",
        lambda m, n, mesh, _: {m: n if m[2] == "ring" else n // mesh.replicas},
        {"microbatches-of-all": None},
    ),
    _changing(
        "ring-not-closed",
        "your rings lack the link from the last replica to the first: this link closes a ring",
        lambda m, n, mesh, _: {} if m[2] == "ring" and m[1] < m[0] else {m: n},
        {"ring-back": "your rings lack the link from the first replica to the last: this link closes a ring"},
    ),
    _changing(
        "ring-both-ways",
        "a ring has one direction: a rank sends to the next replica, and receives from the one before",
        lambda m, n, mesh, _: {m: n, (m[1], m[0], "ring"): n} if m[2] == "ring" else {m: n},
        {"ring-back": "a ring has one direction: a rank sends to the replica before, and receives from the next one"},
    ),
    _changing(
        "boundaries-as-stages",
        "your last stage also exchanges messages with stage 0: K stages in a row have K-1 boundaries",
        _with_one_more_boundary,
    ),
    _rings(
        "ring-of-one",
        "with one replica there is no ring: a rank sends nothing to itself",
        lambda replicas, _: max(1, 2 * (replicas - 1)),
    ),
    _rings("d-steps", "a rank sends 2(D-1) ring messages in a step, not D", lambda replicas, _: replicas),
    _rings("2d-steps", "a rank sends 2(D-1) ring messages in a step, not 2D", lambda replicas, _: 2 * replicas),
    _changing(
        "half-a-ring",
        "a rank sends 2(D-1) ring messages, not D-1",
        lambda m, n, *_: {m: n // 2 if m[2] == "ring" else n},
    ),
    _changing(
        "ring-for-each-microbatch",
        "the ring runs once a step, after all microbatches",
        lambda m, n, mesh, microbatches: {m: n * microbatches if m[2] == "ring" else n},
    ),
    KnownMistake(
        "pipelines-run-on",
        "a pipeline ends with the last stage of its replica: it sends nothing to stage 0 of another replica",
        _running_on,
    ),
    _changing(
        "gradients-forward",
        "your gradients go in the direction of the activations: a gradient goes back, from a stage to the stage before",
        lambda m, n, *_: {(m[1], m[0], m[2]): n} if m[2] == "gradient" else {m: n},
    ),
    _in_replica_0(KINDS),
    _in_replica_0(KINDS[:2]),
    *(_sizes_of_the_notebook(*own) for own in product((True, False), repeat=3) if any(own)),
)


def _with_each(apply: ChangeInCase, undo: ChangeInCase) -> Map:
    """Return the map (a change and its undo) that changes each message in a list, or each key of a dict from messages to counts."""

    def change(sent: Any, of_message: ChangeInCase, case: tuple[Any, ...]) -> Any:
        if isinstance(sent, dict):
            changed: Counter[Any] = Counter()
            for message, count in sent.items():
                changed[of_message(message, case)] += count
            return changed
        if isinstance(sent, (list, tuple, np.ndarray)):
            return like(sent, [of_message(message, case) for message in sent])
        return refuse(sent, "a list of messages")

    return Map(lambda sent, case: change(sent, apply, case), lambda sent, case: change(sent, undo, case))


def _numbered(numbering: Callable[[int, int, int, int], int]) -> Map:
    """Return the map to another numbering of the ranks; the undo leaves a rank outside the mesh unchanged.

    ``numbering`` takes the stage, the replica, the number of stages and the number of replicas.
    """

    def renumbered(message: Any, own: Callable[[int], int]) -> Any:
        sender, receiver, kind = message
        return own(sender), own(receiver), kind

    def apply(message: Any, case: tuple[Any, ...]) -> Any:
        stages, replicas, _ = case
        return renumbered(message, lambda rank: numbering(rank % stages, rank // stages, stages, replicas))

    def undo(message: Any, case: tuple[Any, ...]) -> Any:
        stages, replicas, _ = case
        own = {numbering(stage, replica, stages, replicas): replica * stages + stage for stage, replica in np.ndindex(stages, replicas)}
        return renumbered(message, lambda rank: own.get(rank, rank))

    return _with_each(apply, undo)


def _turned_round(message: Any, case: tuple[Any, ...]) -> Any:
    sender, receiver, kind = message
    return (receiver, sender, kind) if kind == "ring" else message


def _counted(sent: Any) -> list[Any]:
    return [(*message, count) for message, count in Counter(sent).items()]


def _with_counts_as_values(sent: Any) -> Counter[Any]:
    """Return a dict from messages to counts. A list cannot hold the messages if a student's count is wrong and very large."""
    found: Counter[Any] = Counter()
    for sender, receiver, kind, count in sent:
        found[sender, receiver, kind] += count
    return found


EXAMPLES = (
    Example(
        (2, 2, 1),
        [
            *((0, 1, "activation"), (1, 0, "gradient"), (0, 2, "ring"), (0, 2, "ring"), (1, 3, "ring"), (1, 3, "ring")),
            *((2, 3, "activation"), (3, 2, "gradient"), (2, 0, "ring"), (2, 0, "ring"), (3, 1, "ring"), (3, 1, "ring")),
        ],
    ),
    Example((1, 3, 1), 4 * [(0, 1, "ring")] + 4 * [(1, 2, "ring")] + 4 * [(2, 0, "ring")]),
)
KIND_FIRST = exchanged((2, 0, 1))
TWISTS = (
    Twist(
        "stage-by-stage",
        "rank = stage x D + replica",
        result=_numbered(lambda stage, replica, stages, replicas: stage * replicas + replica),
        about="ranks",
    ),
    Twist(
        "ring-back",
        "a ring message goes to the replica before, from the first replica to the last one",
        result=_with_each(_turned_round, _turned_round),
    ),
    Twist(
        "counted-down",
        "rank = K x D - 1 - (replica x K + stage)",
        result=_numbered(lambda stage, replica, stages, replicas: stages * replicas - 1 - (replica * stages + stage)),
        about="ranks",
    ),
    Twist(
        "microbatches-of-all",
        "`microbatches` counts those of all replicas together, and each replica has the same number of them",
        given={2: each_number(lambda microbatches, case: microbatches * case[1], lambda microbatches, case: microbatches // case[1])},
    ),
    Twist(
        "last-stage-first",
        "rank = (K - 1 - stage) x D + replica",
        result=_numbered(lambda stage, replica, stages, replicas: (stages - 1 - stage) * replicas + replica),
        about="ranks",
    ),
    Twist(
        "kind-first",
        "a message is (kind, from_rank, to_rank)",
        result=_with_each(KIND_FIRST.apply, KIND_FIRST.undo),
        about="message",
    ),
    Twist(
        "counted",
        "equal messages stand in the list once, as (from_rank, to_rank, kind, how many)",
        result=of_value(_counted, _with_counts_as_values),
        about="message",
    ),
)
