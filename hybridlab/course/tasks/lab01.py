"""Lab 1, the mesh: the tasks and the feedback on their answers."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from hybridlab.checks import short_repr
from hybridlab.course.tasks.answers import Mistake, mistake_behind, require_number, require_numbers, require_parts
from hybridlab.course.tasks.checking import Feedback, right, task, wrong, wrong_value
from hybridlab.errors import HybridLabError
from hybridlab.mesh import Mesh, Place
from hybridlab.wire import FP16

Layout = Callable[[Place], int]


@task(
    "lab01.t1",
    title="Where is rank 23?",
    prompt="give the stage and the replica of rank 23 in a mesh of 5 stages and 6 replicas, as (stage, replica)",
)
def where_is_rank_23(answer: object) -> Feedback:
    """Judge the coordinates of a rank."""
    mesh, rank = Mesh(stages=5, replicas=6), 23
    stage, replica = found = require_numbers(answer, 2, "stage or the replica of the rank")
    if found == list(mesh.coordinates(rank)):
        return right("23 = 4 x 5 + 3: four whole pipelines come before it, and in the fifth it is the device of stage 3")
    by_replicas = "you have divided by the 6 replicas: a pipeline has 5 ranks in a row, one a stage, so divide by 5"
    mistakes: list[Mistake] = [
        ((4, 3), "swapped", "these are the right numbers in the wrong order: the stage comes first"),
        ((5, 3), "divided-by-replicas", by_replicas),
        ((3, 5), "divided-by-replicas", by_replicas),
        ((2, 4), "ranks-from-1", "this counts the ranks from 1: rank 0 is stage 0 of replica 0"),
        ((4, 5), "stages-from-1", "you have counted stages and replicas from 1: the first stage and the first replica are 0"),
    ]
    for value, name, count in ((stage, "stage", mesh.stages), (replica, "replica", mesh.replicas)):
        if value not in range(count):
            missing = f"there is no {name} {value:g} in this mesh: they are 0 to {count - 1}"
            return wrong_value(found, mistakes, missing, code=f"no-such-{name}")
    its_rank = mesh.rank(int(stage), int(replica))
    return wrong_value(found, mistakes, f"stage {stage:g} of replica {replica:g} is rank {its_rank}: rank = replica x K + stage")


@task(
    "lab01.t2",
    title="Two groups of a new mesh",
    prompt="give the ranks of the stage group of stage 2, and those of the pipeline of replica 1, "
    "in a mesh of 4 stages and 3 replicas, as two lists",
)
def two_groups(answer: object) -> Feedback:
    """Judge the ranks of a stage group and of a pipeline."""
    mesh = Mesh(stages=4, replicas=3)
    truth = group, pipeline = mesh.stage_group(2), mesh.pipeline(1)
    found = tuple(_ranks(part, mesh) for part in require_parts(answer, 2, "two lists of ranks, such as ([0, 1], [2, 3])"))
    if found == (pipeline, group):
        return wrong("swapped", "these are the right ranks in the wrong order: the stage group comes first")
    for ranks, expected, name in zip(found, truth, ("stage group of stage 2", "pipeline of replica 1"), strict=True):
        if ranks != expected:
            return _wrong_group(mesh, ranks, expected, name)
    return right("a stage group has a rank from every pipeline, K apart; a pipeline has K ranks in a row")


def _ranks(value: object, mesh: Mesh) -> tuple[int, ...]:
    """Return a list of ranks in order, each checked against the mesh."""
    if not isinstance(value, list) or not value:
        raise HybridLabError(f"a group is a list of ranks, such as [0, 1], not {short_repr(value)}", "not-a-list")
    numbers = [require_number(each, "a rank", "7") for each in value]
    for number in numbers:
        if number not in range(mesh.size):
            raise HybridLabError(f"there is no rank {number:g} in this mesh: they are 0 to {mesh.size - 1}", "no-such-rank")
    return tuple(sorted(int(number) for number in numbers))


def _wrong_group(mesh: Mesh, ranks: tuple[int, ...], truth: tuple[int, ...], name: str) -> Feedback:
    for rank in ranks:
        if rank not in truth:
            place = mesh.coordinates(rank)
            return wrong("not-in-group", f"rank {rank} is not in the {name}: it is stage {place.stage} of replica {place.replica}")
    if len(set(ranks)) < len(ranks):
        return wrong("rank-twice", f"the {name} has each of its ranks once")
    return wrong("ranks-missing", f"the {name} has more ranks than these: this mesh has {mesh.stages} stages and {mesh.replicas} replicas")


@task(
    "lab01.t3",
    title="Round the ring",
    prompt="give the rank that rank 20 sends its ring messages to, and the rank that it receives them from, "
    "in a mesh of 6 stages and 4 replicas, as (to, from)",
)
def round_the_ring(answer: object) -> Feedback:
    """Judge the two neighbours of a rank in its ring."""
    mesh, rank = Mesh(stages=6, replicas=4), 20
    found = require_numbers(answer, 2, "neighbour of rank 20 in its ring")
    ring = mesh.ring(mesh.coordinates(rank).stage)
    to = next(receiver for sender, receiver in ring if sender == rank)
    source = next(sender for sender, receiver in ring if receiver == rank)
    if found == [to, source]:
        return right("rank 20 is stage 2 of the last replica: its ring closes with the same stage of replica 0, rank 2")
    if found == [source, to]:
        return wrong("swapped", "these are its two neighbours, but a ring message goes to the next replica: swap them")
    mistakes: list[Mistake] = [
        (26, "ring-not-closed", "rank 26 would be the next, but the mesh ends at rank 23: the last replica sends to the first"),
        (
            21,
            "next-stage",
            "rank 21 is the next stage of the same replica: rank 20 sends it activations, but is not in a ring with it",
        ),
        (19, "stage-before", "rank 19 is the stage before in the same replica: it is in another ring"),
        (16, "replicas-apart", "rank 16 is 4 ranks away: the copies of a stage are K = 6 ranks apart"),
        (0, "another-stage", "rank 0 is stage 0: a ring joins the copies of one stage"),
    ]
    hint = "find the coordinates of rank 20, then the same stage in the next replica and in the one before"
    doubtful = next((value for value in found if value in [known for known, _, _ in mistakes]), found)
    return wrong_value(doubtful, mistakes, f"rank 20 does not have {found[0]:g} and {found[1]:g} as its neighbours: {hint}")


@task(
    "lab01.t4",
    title="Messages and bytes",
    prompt="give the number of messages along the pipelines, and the bytes of all ring messages, of a step with "
    "K=4, D=8, M=16 and 4000 gradients a stage in FP16, as (messages, bytes)",
    points=2,
)
def messages_and_bytes_of_a_step(answer: object) -> Feedback:
    """Judge the count of pipeline messages and the bytes of ring messages of a whole mesh."""
    stages, replicas, microbatches, size = 4, 8, 16, 4000
    messages, nbytes = require_numbers(answer, 2, "count of pipeline messages or of ring bytes")
    truth = 2 * (stages - 1) * microbatches * replicas
    sends = stages * replicas * 2 * (replicas - 1)
    ring = sends * FP16.nbytes(size // replicas)
    if messages != truth:
        mistakes: list[Mistake] = [
            (truth // replicas, "one-pipeline-alone", "this is one pipeline: there are 8"),
            (truth // 2, "one-way", "this counts one way: activations go on, and their gradients come back"),
            (2 * stages * microbatches * replicas, "boundaries-as-stages", "this counts K = 4 boundaries: 4 stages in a row have 3"),
            (truth // microbatches, "one-microbatch-alone", "this is one microbatch: each of the 16 sends its own messages"),
            (sends, "ring-messages", "this is the number of ring messages"),
        ]
        hint = "count the boundaries of a pipeline, two messages a microbatch at each, and the pipelines"
        return wrong_value(messages, mistakes, f"not {messages:g} messages along the pipelines: {hint}", code="wrong-messages")
    if nbytes == ring:
        return right(f"{truth} messages along pipelines; {sends} ring messages of 500 numbers, 1000 bytes each")
    mistakes = [
        (sends * FP16.nbytes(size), "not-cut", "a ring message carries a chunk, an eighth of the gradients, not all 4000"),
        (ring // 2, "one-byte", "this has one byte a number, or half of the 2(D-1) messages of a rank: FP16 takes 2 bytes"),
        (
            2 * ring,
            "twice-the-bytes",
            "this has 2000 bytes a message: a ring cuts the gradients into D = 8 chunks, and FP16 takes 2 bytes a number",
        ),
        (ring // stages, "one-ring-alone", "this is one ring: there are 4, one a stage"),
        (ring // replicas, "one-rank-of-each-ring", "this is what one rank of each ring sends: all 8 send"),
        (ring // (stages * replicas), "one-rank-alone", "this is what one rank sends: there are 32"),
        (sends, "messages-not-bytes", "this is the number of ring messages: how many bytes has each?"),
    ]
    hint = "32 ranks send 2(D-1) messages each; how many numbers has one of D chunks of 4000?"
    return wrong_value(nbytes, mistakes, hint, about="the messages are right, the bytes are not: ", code="wrong-bytes")


@task(
    "lab01.t5",
    title="Across nodes",
    prompt="give the messages of a step that cross nodes, numbered replica by replica and stage by stage, "
    "with K=2, D=8, M=8 and nodes of 4 devices, as two numbers",
    points=2,
)
def across_nodes(answer: object) -> Feedback:
    """Judge how many messages of one step go to another node, for two ways to number the ranks."""
    mesh, microbatches, node = Mesh(stages=2, replicas=8), 8, 4
    found = require_numbers(answer, 2, "count of messages that cross nodes")
    layouts: list[Layout] = [lambda place: mesh.rank(*place), lambda place: place.stage * mesh.replicas + place.replica]
    links = [_crossing_links(mesh, layout, node) for layout in layouts]
    along, around = 2 * microbatches, 2 * (mesh.replicas - 1)  # messages on one link of a pipeline, and of a ring
    truth = [along * pipeline + around * ring for pipeline, ring in links]
    if found == truth:
        return right("replica by replica only rings cross; stage by stage every pipeline does, and each ring of 8 fills two nodes")
    both = [sum(pair) for pair in links]
    one_weight = "the links are right, but a pipeline's link carries 2M messages a step and a ring's 2(D-1)"
    mistake = mistake_behind(
        found,
        [
            (truth[::-1], "swapped", "these are the right numbers in the wrong order: replica by replica comes first"),
            (both, "links-not-messages", "these are links: a pipeline's link carries 2M messages a step, a ring's 2(D-1)"),
            ([along * count for count in both], "one-weight-for-all-links", one_weight),
            ([around * count for count in both], "one-weight-for-all-links", one_weight),
        ],
    )
    if mistake:
        return wrong(*mistake[1:])
    place = 0 if found[0] != truth[0] else 1
    pipeline, ring = links[place]
    mistakes: list[Mistake] = [
        (microbatches * pipeline + around * ring, "one-way", "messages go both ways along a pipeline"),
        (along * pipeline, "rings-missing", "a ring of 8 does not fit into a node of 4: some of its links cross as well"),
        (along * pipeline + 2 * around * ring, "ring-both-ways", "a rank sends one way only round its ring"),
    ]
    about = f"{('replica by replica', 'stage by stage')[place]} it is not {found[place]:g}: "
    return wrong_value(found[place], mistakes, "which links leave their node, and how many messages does each carry?", about=about)


def _crossing_links(mesh: Mesh, layout: Layout, node: int) -> tuple[int, int]:
    """Return two numbers: how many links of pipelines, and how many links of rings, go from one node to another."""
    pipelines = [pair for replica in range(mesh.replicas) for pair in pairwise(mesh.pipeline(replica))]
    rings = [pair for stage in range(mesh.stages) for pair in mesh.ring(stage)]

    def crossing(links: Sequence[tuple[int, int]]) -> int:
        nodes = ((layout(mesh.coordinates(rank)) // node for rank in link) for link in links)
        return sum(first != second for first, second in nodes)

    return crossing(pipelines), crossing(rings)
