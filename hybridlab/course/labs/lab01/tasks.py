"""Lab 1, devices, ranks and messages: the tasks, and the feedback on answers to them."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product

import numpy as np

from hybridlab.checks import counted
from hybridlab.course.checking.builds import Case, build_task
from hybridlab.course.checking.checking import Feedback, right, wrong
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab01.messages import EXAMPLES, MISTAKES, TWISTS, Message, messages_of, read_messages
from hybridlab.mesh import Mesh, Place
from hybridlab.wire import FP16

Layout = Callable[[Place], int]


@number_task("lab01.t1", title="Find a rank", draws={"stages": (5, 7), "replicas": (6, 8), "stage": (1, 2, 3), "replica": (4, 5)})
def find_a_rank(stages: int = 5, replicas: int = 6, stage: int = 3, replica: int = 4) -> Question:
    """Ask for the coordinates of a rank."""
    mesh = Mesh(stages, replicas)
    rank = mesh.rank(stage, replica)
    by_replicas = divmod(rank, replicas)
    divided = f"you have divided by the {replicas} replicas: a pipeline has {stages} ranks in a row, one a stage, so divide by {stages}"
    place = Number(
        "stage or the replica of the rank",
        [stage, replica],
        hint="stage {value[0]:g} of replica {value[1]:g} is rank {value[1] * K + value[0]:g}: rank = replica x K + stage",
        given={"K": stages, "stages": range(stages), "replicas": range(replicas)},
        fields=("Stage", "Replica"),
        mistakes=[
            ([replica, stage], "swapped", "these are the right numbers in the wrong order: the stage comes first"),
            (by_replicas, "divided-by-replicas", divided),
            (by_replicas[::-1], "divided-by-replicas", divided),
            (mesh.coordinates(rank - 1), "ranks-from-1", "your answer counts the ranks from 1: rank 0 is stage 0 of replica 0"),
            (
                [stage + 1, replica + 1],
                "stages-from-1",
                "you have counted stages and replicas from 1: the first stage and the first replica are 0",
            ),
            (
                "value[0] not in stages",
                "no-such-stage",
                f"this mesh has no stage {{value[0]:g}}: its stages are 0 to {stages - 1}",
            ),
            (
                "value[1] not in replicas",
                "no-such-replica",
                f"this mesh has no replica {{value[1]:g}}: its replicas are 0 to {replicas - 1}",
            ),
        ],
    )
    return Question(
        f"give the stage and the replica of rank {rank} in a mesh of {stages} stages and {replicas} replicas, as (stage, replica)",
        [place],
        f"{rank} = {replica} x {stages} + {stage}: {replica} whole pipelines come before it, and in its own it is stage {stage}",
    )


@number_task(
    "lab01.t2", title="Two groups of a new mesh", draws={"stages": (5, 6), "replicas": (3, 4), "stage": (1, 2, 3), "replica": (1, 2)}
)
def two_groups(stages: int = 5, replicas: int = 3, stage: int = 2, replica: int = 1) -> Question:
    """Ask for the ranks of a stage group and of a pipeline."""
    mesh = Mesh(stages, replicas)
    truth = group, pipeline = [[*mesh.stage_group(stage)], [*mesh.pipeline(replica)]]
    names = f"stage group of stage {stage}", f"pipeline of replica {replica}"
    places = [mesh.coordinates(rank) for rank in range(mesh.size)]
    given = {
        "ranks": range(mesh.size),
        "group": group,
        "pipeline": pipeline,
        "names": names,
        "stages": [place.stage for place in places],
        "replicas": [place.replica for place in places],
    }
    unknown = "without(value[0] + value[1], ranks)"
    of_group = "without(value[0], group)"
    strangers = f"({of_group} + without(value[1], pipeline))"
    missing = f"your group {{value}} lacks ranks; this mesh has {stages} stages and {replicas} replicas"
    return Question(
        f"give the ranks of the stage group of stage {stage}, and those of the pipeline of replica {replica}, "
        f"in a mesh of {stages} stages and {replicas} replicas, as two lists",
        [
            Number("rank of a group", ranks, missing, code="ranks-missing", ordered=False, example="7", fields=(f"Ranks of the {name}",))
            for ranks, name in zip(truth, names, strict=True)
        ],
        "a stage group has a rank from every pipeline, K apart; a pipeline has K ranks in a row",
        [
            ("value == [pipeline, group]", "swapped", "these are the right ranks in the wrong order: the stage group comes first"),
            (
                f"len({unknown}) > 0",
                "no-such-rank",
                f"this mesh has no rank {{{unknown}[0]:g}}: its ranks are 0 to {mesh.size - 1}",
            ),
            (
                f"len({strangers}) > 0",
                "not-in-group",
                f"rank {{{strangers}[0]:g}} is not in the {{names[0] if len({of_group}) > 0 else names[1]}}: "
                f"it is stage {{stages[{strangers}[0]]}} of replica {{replicas[{strangers}[0]]}}",
            ),
            (
                "len(distinct(value[0])) < len(value[0]) or len(distinct(value[1])) < len(value[1])",
                "rank-twice",
                "your group has a rank twice: a group has each of its ranks once",
            ),
        ],
        given,
    )


@number_task("lab01.t3", title="Round the ring", draws={"stages": (5, 6, 7), "replicas": (3, 4), "stage": (1, 2, 3)})
def round_the_ring(stages: int = 6, replicas: int = 4, stage: int = 2) -> Question:
    """Ask for the two neighbours of a rank of the last replica in its ring."""
    mesh = Mesh(stages, replicas)
    rank = mesh.rank(stage, replicas - 1)
    to = next(receiver for sender, receiver in mesh.ring(stage) if sender == rank)
    source = next(sender for sender, receiver in mesh.ring(stage) if receiver == rank)
    neighbours = Number(
        f"neighbour of rank {rank} in its ring",
        [to, source],
        hint=f"the neighbours of rank {rank} are not {{value}}: find its coordinates, then the same stage in the next replica "
        "and in the replica before",
        fields=("The rank that it sends to", "The rank that it receives from"),
        mistakes=[
            ([source, to], "swapped", "these are the two neighbours, but in the wrong order: a ring message goes to the next replica"),
            (
                f"{rank + stages} in value",
                "ring-not-closed",
                f"rank {rank + stages} would be the next, but the mesh ends at rank {mesh.size - 1}: the last replica sends to the first",
            ),
            (
                f"{rank + 1} in value",
                "next-stage",
                f"rank {rank + 1} is the next stage of the same replica: rank {rank} sends it activations, but is not in a ring with it",
            ),
            (
                f"{rank - 1} in value",
                "stage-before",
                f"rank {rank - 1} is the stage before in the same replica, and belongs to another ring",
            ),
            (
                f"{rank - replicas} in value or {rank + replicas} in value",
                "replicas-apart",
                f"your neighbour is {replicas} ranks away, the number of replicas: the copies of a stage are K = {stages} ranks apart",
            ),
            ("0 in value", "another-stage", "rank 0 is stage 0: a ring joins the copies of one stage"),
        ],
    )
    return Question(
        f"give the rank to which rank {rank} sends its ring messages, and the rank from which it receives them, "
        f"in a mesh of {stages} stages and {replicas} replicas, as (to, from)",
        [neighbours],
        f"rank {rank} is stage {stage} of the last replica: its ring closes with the same stage of replica 0, rank {to}",
    )


@number_task(
    "lab01.t4",
    title="Messages and bytes",
    points=2,
    draws={"stages": (3, 4, 5), "replicas": (4, 8), "microbatches": (12, 16, 20), "gradients": (2000, 4000)},
)
def messages_and_bytes(stages: int = 4, replicas: int = 8, microbatches: int = 16, gradients: int = 4000) -> Question:
    """Ask for the number of messages along the pipelines and the bytes of the ring messages, both of a whole mesh in one step."""
    along = 2 * (stages - 1) * microbatches * replicas
    sends = stages * replicas * 2 * (replicas - 1)
    chunk = gradients // replicas
    ring = sends * FP16.nbytes(chunk)
    messages = Number(
        "count of pipeline messages",
        along,
        hint="there are not {value} messages along the pipelines: count the boundaries of a pipeline, two messages for each microbatch at "
        "each boundary, and the pipelines",
        mistakes=[
            (along // replicas, "one-pipeline-alone", f"your count is that of one pipeline: there are {replicas} pipelines"),
            (along // 2, "one-way", "your count has one direction only: activations go forward, and their gradients come back"),
            (
                2 * stages * microbatches * replicas,
                "boundaries-as-stages",
                f"your count has K = {stages} boundaries: {stages} stages in a row have {stages - 1} boundaries",
            ),
            (
                along // microbatches,
                "one-microbatch-alone",
                f"your count is that of one microbatch: each of the {microbatches} microbatches causes messages of its own",
            ),
            (sends, "ring-messages", "your count is the number of ring messages: the task asks here for the messages along the pipelines"),
        ],
        code="wrong-messages",
    )
    nbytes = Number(
        "number of bytes of all ring messages",
        ring,
        hint=f"the ring messages do not have {{value}} bytes: {stages * replicas} ranks send 2(D-1) messages each; "
        f"{gradients} gradients are cut into D chunks: how many numbers has a chunk?",
        mistakes=[
            (
                sends * FP16.nbytes(gradients),
                "not-cut",
                f"a ring message carries one of D = {replicas} chunks of the gradients, not all {gradients}",
            ),
            (
                ring // 2,
                "one-byte",
                "your answer has one byte a number, or half of the 2(D-1) messages of a rank: FP16 takes 2 bytes a number",
            ),
            (
                2 * ring,
                "twice-the-bytes",
                f"your answer has {2 * FP16.nbytes(chunk)} bytes a message: a ring cuts the gradients into D = {replicas} chunks, "
                "and FP16 takes 2 bytes a number",
            ),
            (ring // stages, "one-ring-alone", f"your answer has the bytes of one ring: there are {stages} rings, one for each stage"),
            (
                ring // replicas,
                "one-rank-of-each-ring",
                f"your answer has the bytes of one rank of each ring: all {replicas} ranks send",
            ),
            (
                ring // (stages * replicas),
                "one-rank-alone",
                f"your answer has the bytes of one rank: there are {stages * replicas} ranks",
            ),
            (sends, "messages-not-bytes", "your answer is the number of ring messages: how many bytes has each message?"),
        ],
        code="wrong-bytes",
    )
    return Question(
        "give the number of messages along the pipelines, and the bytes of all ring messages, of a step with "
        f"K={stages}, D={replicas}, M={microbatches} and {gradients} gradients a stage in FP16, as (messages, bytes)",
        [messages, nbytes],
        f"{along} messages along pipelines; {sends} ring messages of {chunk} numbers, {FP16.nbytes(chunk)} bytes each",
    )


@number_task(
    "lab01.t5",
    title="Across nodes",
    points=2,
    draws={"stages": (2, 4), "replicas": (8, 12), "microbatches": (5, 6, 8, 9, 10), "node": (4,)},
)
def across_nodes(stages: int = 2, replicas: int = 8, microbatches: int = 8, node: int = 4) -> Question:
    """Ask how many messages of one step go to another node, for two ways to number the ranks."""
    mesh = Mesh(stages, replicas)
    layouts: list[Layout] = [lambda place: mesh.rank(*place), lambda place: place.stage * replicas + place.replica]
    links = [_crossing_links(mesh, layout, node) for layout in layouts]
    not_closed = [_crossing_links(mesh, layout, node, closed=False) for layout in layouts]
    along, around = 2 * microbatches, 2 * (replicas - 1)  # messages on one link of a pipeline, and of a ring
    truth = [along * pipeline + around * ring for pipeline, ring in links]
    both = [sum(pair) for pair in links]
    one_weight = "you count the right links, but a link of a pipeline carries 2M messages a step, and a link of a ring 2(D-1)"
    orders = ("replica by replica", "stage by stage")
    about = "numbered {orders[place]}, the count is not {value[place]:g}: "
    crossing = Number(
        "count of messages that cross nodes",
        truth,
        hint=f"{about}which links leave their node, and how many messages does each carry?",
        given={
            "orders": orders,
            "one_way": [microbatches * pipeline + around * ring for pipeline, ring in links],
            "no_rings": [along * pipeline for pipeline, _ in links],
            "both_ways": [along * pipeline + 2 * around * ring for pipeline, ring in links],
            "not_closed": [along * pipeline + around * ring for pipeline, ring in not_closed],
        },
        fields=[f"Messages, numbered {order}" for order in orders],
        mistakes=[
            (truth[::-1], "swapped", "these are the right numbers in the wrong order: replica by replica comes first"),
            (
                both,
                "links-not-messages",
                "your answer counts links: a link of a pipeline carries 2M messages, a link of a ring 2(D-1)",
            ),
            ([along * count for count in both], "one-weight-for-all-links", one_weight),
            ([around * count for count in both], "one-weight-for-all-links", one_weight),
            ("value[place] == one_way[place]", "one-way", f"{about}messages go both ways along a pipeline"),
            (
                "value[place] == no_rings[place]",
                "rings-missing",
                f"{about}a ring of {replicas} ranks does not fit into a node of {node} devices: some of its links also cross nodes",
            ),
            ("value[place] == both_ways[place]", "ring-both-ways", f"{about}a rank sends in one direction only round its ring"),
            (
                "value[place] == not_closed[place]",
                "ring-not-closed",
                f"{about}the last replica sends to the first, and this link also crosses nodes",
            ),
        ],
    )
    return Question(
        "give the messages of a step that cross nodes, numbered replica by replica and stage by stage, "
        f"with K={stages}, D={replicas}, M={microbatches} and nodes of {node} devices, as two numbers",
        [crossing],
        f"replica by replica only rings cross; stage by stage every pipeline does, and a ring of {replicas} fills {replicas // node} nodes",
    )


def _crossing_links(mesh: Mesh, layout: Layout, node: int, closed: bool = True) -> tuple[int, int]:
    """Return two numbers: how many links of pipelines, and how many links of rings, go from one node to another.

    If not ``closed``, the links from the last replica to the first are left out.
    """
    pipelines = [pair for replica in range(mesh.replicas) for pair in pairwise(mesh.pipeline(replica))]
    rings = [pair for stage in range(mesh.stages) for pair in mesh.ring(stage) if closed or pair[0] < pair[1]]

    def crossing(links: Sequence[tuple[int, int]]) -> int:
        nodes = ((layout(mesh.coordinates(rank)) // node for rank in link) for link in links)
        return sum(first != second for first, second in nodes)

    return crossing(pipelines), crossing(rings)


SMALL = 6  # the largest K x D x M of the sizes that are tried with every seed


def _meshes(rng: np.random.Generator) -> Iterator[Case]:
    """Yield all sizes with K, D and M up to 3 and a product up to 6, and 40 random larger sizes, from the smallest to the largest."""
    small, large = product(range(1, 4), repeat=3), product(range(1, 9), range(1, 8), range(1, 12))
    fixed = [size for size in small if np.prod(size) <= SMALL]
    drawn = rng.permutation([size for size in large if np.prod(size) > SMALL])[:40].tolist()
    for size in sorted([*fixed, *map(tuple, drawn)], key=lambda size: (np.prod(size), size)):
        stages, replicas, microbatches = size
        yield Case(size, f"{counted(stages, 'stage')}, {counted(replicas, 'replica')} and {counted(microbatches, 'microbatch')}")


@build_task(
    "lab01.t6",
    title="All messages of a step",
    prompt="write a function messages(stages, replicas, microbatches) that returns a list of (from rank, to rank, kind), "
    "one for each message of a step",
    points=4,
    signature="messages(stages, replicas, microbatches)",
    cases=_meshes,
    reads=read_messages,
    mistakes=MISTAKES,
    twists=TWISTS,
    examples=EXAMPLES,
    lesson="2(K-1)MD messages along the pipelines and 2(D-1)KD round the rings, and you know from whom to whom",
)
def all_messages(messages: list[Message], stages: int, replicas: int, microbatches: int) -> Feedback:
    """Judge a student's messages for one size: first the pairs of ranks, then the number of equal messages."""
    mesh = Mesh(stages, replicas)
    found, wanted = Counter(messages), messages_of(mesh, microbatches)
    stranger = next((message for message in found if message not in wanted), None)
    if stranger:
        return wrong(*_misdirected(mesh, *stranger))
    for sender, receiver, kind in wanted:
        if (sender, receiver, kind) not in found:
            return wrong("missing", f"no {_words(kind)} goes from rank {sender} to rank {receiver}")
    for (sender, receiver, kind), count in wanted.items():
        sends = found[sender, receiver, kind]
        if sends != count:
            return wrong("wrong-count", f"rank {sender} sends {counted(sends, _words(kind))} to rank {receiver}; how many are needed?")
    return right()


def _misdirected(mesh: Mesh, sender: int, receiver: int, kind: str) -> tuple[str, str]:
    """Return the code and the sentence for a message between two ranks that do not exchange messages of this kind."""
    words = f"rank {sender} sends {'an' if kind == 'activation' else 'a'} {_words(kind)} to rank {receiver}"
    if max(sender, receiver) >= mesh.size:
        return "no-such-rank", f"{words}, but the ranks are 0 to {mesh.size - 1}"
    if sender == receiver:
        return "to-itself", f"{words}, itself"
    (stage, replica), (to_stage, to_replica) = mesh.coordinates(sender), mesh.coordinates(receiver)
    words = f"{words}: from stage {stage} of replica {replica} to stage {to_stage} of replica {to_replica}"
    if kind == "ring":
        if stage != to_stage:
            return "ring-leaves-its-stage", f"{words}; a ring message goes to another replica of the same stage"
        return "not-the-next-replica", f"{words}; a ring message goes to the next replica, from the last one to the first"
    if kind == "activation":
        return "not-the-next-stage", f"{words}; an activation goes to the next stage of the same replica"
    return "not-the-stage-before", f"{words}; a gradient goes to the stage before in the same replica"


def _words(kind: str) -> str:
    return "ring message" if kind == "ring" else kind
