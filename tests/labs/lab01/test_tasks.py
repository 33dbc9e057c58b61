"""Test lab 1's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

from collections import Counter, namedtuple
from collections.abc import Callable, Iterator
from itertools import chain, pairwise, product
from typing import Any

import numpy as np
from forms import form_by_form

from hybridlab import Mesh
from hybridlab.course.tasks import TASKS, check

Sent = list[tuple[int, int, str]]


def messages_by_place(stages: int, replicas: int, microbatches: int) -> Iterator[tuple[int, int, str]]:
    """All messages of a step, from a picture of the mesh: a row a replica, a column a stage."""
    ranks = drawn(stages, replicas)
    for before, after in zip(ranks[:, :-1].ravel(), ranks[:, 1:].ravel(), strict=True):
        for _ in range(microbatches):
            yield before, after, "activation"
            yield after, before, "gradient"
    for _ in range(2 * (replicas - 1)):
        yield from ((sender, receiver, "ring") for sender, receiver in zip(ranks.ravel(), np.roll(ranks, -1, axis=0).ravel(), strict=True))


def drawn(stages: int, replicas: int) -> np.ndarray[Any, np.dtype[np.int_]]:
    """The ranks as a picture of the mesh: a row a replica, a column a stage."""
    return np.arange(stages * replicas).reshape(replicas, stages)


def program(
    number: Callable[..., int] = lambda stage, replica, stages, replicas: replica * stages + stage,
    steps: Callable[..., int] = lambda replicas, microbatches: 2 * (replicas - 1),
    each: Callable[..., int] = lambda replicas, microbatches: microbatches,
    boundaries: Callable[[int], int] = lambda stages: stages - 1,
    after: Callable[..., int] = lambda replica, replicas: (replica + 1) % replicas,
    sends: Callable[..., bool] = lambda kind, stage, replica: True,
) -> Callable[[int, int, int], Sent]:
    """A student's program, with one of its parts written in another way."""

    def messages(stages: int, replicas: int, microbatches: int) -> Sent:
        sent = []
        for stage, replica in product(range(stages), range(replicas)):
            rank = number(stage, replica, stages, replicas)
            if stage < boundaries(stages):
                beside = number((stage + 1) % stages, replica, stages, replicas)
                sent += each(replicas, microbatches) * [(rank, beside, "activation")] * sends("activation", stage, replica)
                sent += each(replicas, microbatches) * [(beside, rank, "gradient")] * sends("gradient", stage, replica)
            neighbour = number(stage, after(replica, replicas), stages, replicas)
            sent += steps(replicas, microbatches) * [(rank, neighbour, "ring")] * sends("ring", stage, replica)
        return sent

    return messages


def hard_coded(stages: int, replicas: int, microbatches: int) -> Sent:
    """The examples of the text, and nothing else."""
    if (stages, replicas, microbatches) == (2, 1, 1):
        return [(0, 1, "activation"), (1, 0, "gradient")]
    return [(0, 1, "ring"), (0, 1, "ring"), (1, 0, "ring"), (1, 0, "ring")] if replicas == 2 else []


def edited(change: Callable[..., Any]) -> Callable[[int, int, int], Any]:
    """A program that changes the list of the right messages at the end: ``change(sent, stages, replicas)``."""
    return lambda stages, replicas, microbatches: change(program()(stages, replicas, microbatches), stages, replicas)


def backwards(sent: Sent, kind: str) -> Sent:
    return [(b, a, each) if each == kind else (a, b, each) for a, b, each in sent]


def ring_along_the_pipeline(stages: int, replicas: int, microbatches: int) -> Sent:
    if stages == 1:
        return program()(stages, replicas, microbatches)
    sent = [message for message in program()(stages, replicas, microbatches) if message[2] != "ring"]
    for row in drawn(stages, replicas):
        sent += 2 * (replicas - 1) * [(a, b, "ring") for a, b in zip(row, np.roll(row, -1), strict=True)]
    return sent


def on_to_the_next_rank(sent: Sent, stages: int, replicas: int) -> Sent:
    return sent + [(rank, rank + 1, "activation") for rank in range(stages - 1, stages * replicas, stages)]


def back_a_replica(sent: Sent, stages: int, replicas: int) -> Sent:
    return [(a, a - stages if kind == "gradient" and a >= stages else b, kind) for a, b, kind in sent]


def along_all_ranks(stages: int, replicas: int, microbatches: int) -> Sent:
    """Sends from each rank to the next one, except from the last."""
    sent = [message for message in program()(stages, replicas, microbatches) if message[2] == "ring"]
    for rank in range(stages * replicas - 1):
        sent += microbatches * [(rank, rank + 1, "activation"), (rank + 1, rank, "gradient")]
    return sent


def without_the_replica(stages: int, replicas: int, microbatches: int) -> Sent:
    """Forgets the replica in the ranks of a pipeline."""
    sent = [message for message in program()(stages, replicas, microbatches) if message[2] == "ring"]
    for _, stage in product(range(replicas), range(stages - 1)):
        sent += microbatches * [(stage, stage + 1, "activation"), (stage + 1, stage, "gradient")]
    return sent


class Adding:
    """A program that adds the messages of each call to those of the calls before."""

    def __init__(self) -> None:
        self.sent: Sent = []

    def messages(self, stages: int, replicas: int, microbatches: int) -> Sent:
        self.sent += program()(stages, replicas, microbatches)
        return self.sent


def by_the_library(stages: int, replicas: int, microbatches: int) -> Sent:
    mesh = Mesh(stages, replicas)
    along = [link for replica in range(replicas) for link in pairwise(mesh.pipeline(replica))] * microbatches
    around = [link for stage in range(stages) for link in mesh.ring(stage)] * (2 * replicas - 2)
    there = [(a, b, "activation") for a, b in along]
    return there + [(b, a, "gradient") for a, b in along] + [(a, b, "ring") for a, b in around]


Message = namedtuple("Message", "sender receiver kind")

# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab01.t1", (4, 3), "swapped"),
    ("lab01.t1", (5, 3), "divided-by-replicas"),
    ("lab01.t1", (3, 5), "divided-by-replicas"),
    ("lab01.t1", (2, 4), "ranks-from-1"),
    ("lab01.t1", (4, 5), "stages-from-1"),
    ("lab01.t1", (2, 2), "wrong-value", "stage 2", "replica 2", "rank 12"),
    ("lab01.t1", {3, 4}, "no-order"),
    ("lab01.t1", (5, 2), "no-such-stage", "stage 5", "0 to 4"),
    ("lab01.t1", (1, -1), "no-such-replica", "replica -1"),
    ("lab01.t1", (3, 4.5), "no-such-replica", "replica 4.5"),
    ("lab01.t1", 23, "not-a-list"),
    ("lab01.t1", ("3", "4"), "not-a-number"),
    ("lab01.t2", ([5, 6, 7, 8, 9], [2, 7, 12]), "swapped"),
    ("lab01.t2", ([2, 5, 8], [5, 6, 7, 8, 9]), "not-in-group", "rank 5", "stage group of stage 2", "stage 0 of replica 1"),
    ("lab01.t2", ([2, 7, 12], [3, 4, 5]), "not-in-group", "rank 3", "pipeline of replica 1", "stage 3 of replica 0"),
    ("lab01.t2", ([2, 7], [5, 6, 7, 8, 9]), "ranks-missing", "2, 7", "5 stages"),
    ("lab01.t2", ([2, 7, 12], [5, 6, 7, 7, 8, 9]), "rank-twice"),
    ("lab01.t2", ([2, 7, 12, 17], [5, 6, 7, 8, 9]), "no-such-rank", "rank 17", "0 to 14"),
    ("lab01.t2", [2, 7, 12], "wrong-shape"),
    ("lab01.t2", (2, 5), "not-a-list"),
    ("lab01.t2", ([2, 7, 12], ["5"]), "not-a-number"),
    ("lab01.t3", (14, 2), "swapped"),
    ("lab01.t3", (26, 14), "ring-not-closed"),
    ("lab01.t3", (21, 19), "next-stage"),
    ("lab01.t3", (2, 19), "stage-before"),
    ("lab01.t3", (0, 14), "another-stage"),
    ("lab01.t3", (2, 16), "replicas-apart", "4 ranks", "K = 6"),
    ("lab01.t3", (8, 14), "wrong-value", "8", "14"),
    ("lab01.t3", [2], "wrong-length"),
    ("lab01.t4", (96, 448_000), "one-pipeline-alone"),
    ("lab01.t4", (384, 448_000), "one-way"),
    ("lab01.t4", (1024, 448_000), "boundaries-as-stages"),
    ("lab01.t4", (48, 448_000), "one-microbatch-alone"),
    ("lab01.t4", (448, 448_000), "ring-messages"),
    ("lab01.t4", (700, 448_000), "wrong-messages", "700 messages"),
    ("lab01.t4", (768, 3_584_000), "not-cut"),
    ("lab01.t4", (768, 224_000), "one-byte"),
    ("lab01.t4", (768, 896_000), "twice-the-bytes"),
    ("lab01.t4", (768, 112_000), "one-ring-alone"),
    ("lab01.t4", (768, 56_000), "one-rank-of-each-ring"),
    ("lab01.t4", (768, 14_000), "one-rank-alone"),
    ("lab01.t4", (768, 448), "messages-not-bytes"),
    ("lab01.t4", (768, 5), "wrong-bytes"),
    ("lab01.t4", (768, "448000"), "not-a-number", "the number of bytes of all ring messages is a number such as 17"),
    ("lab01.t5", (184, 112), "swapped"),
    ("lab01.t5", (8, 12), "links-not-messages"),
    ("lab01.t5", (128, 192), "one-weight-for-all-links"),
    ("lab01.t5", (0, 184), "rings-missing", "replica by replica"),
    ("lab01.t5", (112, 128), "rings-missing", "stage by stage"),
    ("lab01.t5", (112, 120), "one-way"),
    ("lab01.t5", (224, 184), "ring-both-ways"),
    ("lab01.t5", (84, 156), "ring-not-closed", "replica by replica", "84"),
    ("lab01.t5", (112, 156), "ring-not-closed", "stage by stage", "156"),
    ("lab01.t5", (111, 184), "wrong-value", "replica by replica", "111"),
    ("lab01.t5", (112, 183), "wrong-value", "stage by stage", "183"),
    ("lab01.t5", "112, 184", "not-a-list"),
    ("lab01.t6", program(number=lambda stage, replica, stages, replicas: stage * replicas + replica), "stages-first"),
    ("lab01.t6", program(sends=lambda kind, stage, replica: kind != "gradient"), "no-way-back", "2 stages", "rank 1 to rank 0"),
    ("lab01.t6", program(sends=lambda kind, stage, replica: kind == "ring" or replica == 0), "one-pipeline-alone"),
    ("lab01.t6", program(sends=lambda kind, stage, replica: kind != "ring" or stage == 0), "one-ring-alone"),
    ("lab01.t6", program(each=lambda replicas, microbatches: 1), "microbatches-forgotten", "1 activation", "2 microbatches"),
    ("lab01.t6", program(each=lambda replicas, microbatches: 1, steps=lambda replicas, _: min(1, replicas - 1)), "each-pair-once"),
    ("lab01.t6", program(each=lambda replicas, microbatches: microbatches // replicas), "microbatches-shared"),
    ("lab01.t6", edited(lambda sent, *_: [m for m in sent if m[2] != "ring" or m[1] > m[0]]), "ring-not-closed"),
    ("lab01.t6", edited(lambda sent, *_: sent + [(b, a, kind) for a, b, kind in sent if kind == "ring"]), "ring-both-ways"),
    ("lab01.t6", program(steps=lambda replicas, _: replicas), "d-steps", "1 replica"),
    ("lab01.t6", program(steps=lambda replicas, _: 2 * replicas), "2d-steps", "rank 0", "itself"),
    ("lab01.t6", program(steps=lambda replicas, _: replicas - 1), "half-a-ring", "1 ring message", "2 replicas"),
    ("lab01.t6", program(steps=lambda replicas, microbatches: 2 * (replicas - 1) * microbatches), "ring-for-each-microbatch"),
    ("lab01.t6", program(steps=lambda replicas, _: max(2 * (replicas - 1), 1)), "ring-of-one", "rank 0", "1 replica"),
    ("lab01.t6", program(after=lambda replica, replicas: (replica - 1) % replicas), "not-the-next-replica", "3 replicas"),
    ("lab01.t6", ring_along_the_pipeline, "ring-leaves-its-stage", "2 stages", "rank 0", "rank 1"),
    ("lab01.t6", program(boundaries=lambda stages: stages), "to-itself", "an activation to rank 0"),
    ("lab01.t6", program(boundaries=lambda stages: stages if stages > 1 else 0), "boundaries-as-stages"),
    ("lab01.t6", edited(on_to_the_next_rank), "no-such-rank", "rank 1", "0 to 0"),
    ("lab01.t6", edited(lambda sent, *_: backwards(sent, "activation")), "not-the-next-stage", "stage 1", "stage 0"),
    ("lab01.t6", edited(lambda sent, *_: backwards(sent, "gradient")), "gradients-forward", "rank 0 sends a gradient to rank 1"),
    ("lab01.t6", edited(back_a_replica), "not-the-stage-before", "rank 3 sends a gradient to rank 1"),
    ("lab01.t6", along_all_ranks, "pipelines-run-on", "2 replicas", "stage 0 of replica 1"),
    ("lab01.t6", program(number=lambda stage, replica, stages, replicas: stage), "all-in-replica-0", "2 replicas"),
    ("lab01.t6", without_the_replica, "all-in-replica-0", "2 stages, 2 replicas"),
    ("lab01.t6", lambda *size: program()(3, 4, 6), "sizes-of-the-notebook", "1 stage", "K, D and M"),
    ("lab01.t6", lambda stages, replicas, microbatches: program()(stages, replicas, 6), "sizes-of-the-notebook", "2 stages"),
    ("lab01.t6", lambda stages, replicas, microbatches: program()(3, replicas, microbatches), "sizes-of-the-notebook"),
    ("lab01.t6", edited(lambda sent, *_: sent[1:]), "wrong-count", "1 ring message"),
    ("lab01.t6", program(sends=lambda kind, stage, replica: kind == "ring"), "missing", "no activation", "rank 0 to rank 1"),
    ("lab01.t6", program(each=lambda replicas, microbatches: microbatches + 1), "wrong-count", "2 activations"),
    ("lab01.t6", hard_coded, "missing", "1 stage, 3 replicas and 1 microbatch"),
    ("lab01.t6", lambda *size: set(program()(*size)), "set"),
    ("lab01.t6", lambda *size: Counter(map(str, program()(*size))), "wrong-shape"),
    ("lab01.t6", edited(lambda sent, *_: [(kind, a, b) for a, b, kind in sent]), "wrong-shape", "('ring', 0, 1)"),
    ("lab01.t6", edited(lambda sent, *_: [sent]), "list-in-a-list", "1 stage, 1 replica"),
    ("lab01.t6", edited(lambda sent, *_: [sent] if sent else []), "list-in-a-list", "`+=`", "1 stage, 2 replicas"),
    ("lab01.t6", edited(lambda sent, *_: {"ring": sent}), "not-a-list", "{'ring': []}"),
    ("lab01.t6", lambda stages, replicas, microbatches: program()(replicas, stages, microbatches), "arguments-exchanged", "2 replicas"),
    ("lab01.t6", Adding().messages, "keeps-its-state", "2 stages, 1 replica", "again for 1 stage, 1 replica and 1 microbatch"),
    ("lab01.t6", by_the_library, "not-your-own", "`Mesh`"),
    ("lab01.t6", lambda *size: [message[:2] for message in program()(*size)], "wrong-shape", "(0, 1)"),
    ("lab01.t6", edited(lambda sent, *_: [(a, b, f"{kind}s") for a, b, kind in sent]), "unknown-name", "'rings'"),
    ("lab01.t6", edited(lambda sent, *_: [(a - 1, b, kind) for a, b, kind in sent]), "out-of-range", "-1"),
    ("lab01.t6", edited(lambda sent, *_: [(a + 0.5, b, kind) for a, b, kind in sent]), "not-a-whole-number", "0.5"),
    ("lab01.t6", edited(lambda sent, *_: [(float("nan"), b, kind) for a, b, kind in sent]), "not-a-number", "nan"),
    ("lab01.t6", edited(lambda sent, *_: Counter(sent) if sent else {(0, 0, "ring"): -1}), "out-of-range", "equal messages"),
    ("lab01.t6", lambda *size: len(program()(*size)), "not-a-list"),
    ("lab01.t6", lambda *size: {(0, 0, "ring"): 10**9}, "too-large", "1,000,000,000"),
    ("lab01.t6", lambda stages, replicas: [], "signature", "microbatches"),
    ("lab01.t6", lambda *size: [].sort(), "returns-nothing"),
    ("lab01.t6", [(0, 1, "ring")], "not-a-function"),
]


def test_the_right_answers_are_those_read_off_a_picture() -> None:
    ((replica, stage),) = np.argwhere(drawn(5, 6) == 23)
    assert check("lab01.t1", (stage, replica)).passed
    assert check("lab01.t2", (drawn(5, 3)[:, 2], drawn(5, 3)[1])).passed
    ((replica, stage),) = np.argwhere(drawn(6, 4) == 20)
    column = drawn(6, 4)[:, stage]
    assert check("lab01.t3", (np.roll(column, -1)[replica], np.roll(column, 1)[replica])).passed


def test_the_right_counts_are_those_of_messages_sent_one_by_one() -> None:
    stages, replicas, microbatches = range(4), range(8), range(16)
    sent = [(to - stage) for _, _, stage, to in product(replicas, microbatches, stages, stages) if abs(to - stage) == 1]
    nbytes = sum(np.zeros(4000, dtype=np.float16).nbytes // 8 for _ in product(stages, replicas, range(7), "rg"))
    assert check("lab01.t4", (len(sent), nbytes)).passed


def test_the_right_crossings_are_those_of_every_message_of_a_step() -> None:
    ranks = drawn(2, 8)
    counts = []
    for nodes in (ranks // 4, (np.arange(2) * 8 + np.arange(8)[:, None]) // 4):
        pipelines = 2 * 8 * int((nodes[:, :-1] != nodes[:, 1:]).sum())
        counts.append(pipelines + 2 * 7 * int((nodes != np.roll(nodes, -1, axis=0)).sum()))
    assert check("lab01.t5", counts).passed


# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab01.t1", [3, 4]),
    ("lab01.t1", np.array([3.0, 4.0])),
    ("lab01.t1", Mesh(stages=5, replicas=6).coordinates(23)),
    ("lab01.t2", ((12, 7, 2), [9, 8, 7, 6, 5])),
    ("lab01.t3", (2.0, np.int64(14))),
    ("lab01.t4", [768, 448e3]),
    ("lab01.t5", np.array([112, 184])),
    ("lab01.t2", ({2, 7, 12}, range(5, 10))),
    ("lab01.t4", (np.float32(768), 448_000)),
    ("lab01.t6", program()),
    ("lab01.t6", messages_by_place),
    (
        "lab01.t6",
        form_by_form(
            program(),
            Counter,
            lambda sent: tuple(map(list, sent)),
            lambda sent: [Message(*message) for message in sent],
            chain,
            lambda sent: np.array(sent, dtype=object).reshape(-1, 3),
            lambda sent: [(float(a), b, kind) for a, b, kind in sent],
        ),
    ),
]


def test_the_cases_of_the_build_are_small_sizes_and_drawn_ones_in_which_each_number_varies() -> None:
    build = TASKS["lab01.t6"].instance(None).data
    for seed in range(3):
        sizes = [case.arguments for case in build.cases(np.random.default_rng(seed))]
        assert sizes == sorted(set(sizes), key=lambda size: (np.prod(size), size))
        assert {(1, 1, 1), (1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)} < set(sizes)
        assert [len(set(numbers)) for numbers in zip(*sizes, strict=True)] == [8, 7, 11]


def test_a_mistake_of_every_instance_gets_a_code_of_the_task() -> None:
    drawn_instances = {
        instance.prompt: instance
        for key, seed in product(("lab01.t1", "lab01.t2", "lab01.t3", "lab01.t4", "lab01.t5"), range(200))
        for instance in [TASKS[key].instance(seed)]
    }
    assert len(drawn_instances) > 60
    for prompt, instance in drawn_instances.items():
        truths = [number.truth for number in instance.data.numbers]
        several = len(truths) > 1
        mistakes = [*instance.data.mistakes, *(mistake for number in instance.data.numbers for mistake in number.mistakes)]
        codes = {code for _, code, _ in mistakes}
        for place, number in enumerate(instance.data.numbers):
            for value in [value for value, *_ in number.mistakes if not isinstance(value, str)]:
                answer = [*truths[:place], value, *truths[place + 1 :]] if several else list(value)
                assert instance.judge(answer).code in codes, (prompt, answer)
        answer = truths[::-1] if several else truths[0][::-1]
        assert instance.judge(answer).code in codes | {number.code for number in instance.data.numbers}, (prompt, answer)
