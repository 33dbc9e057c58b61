"""Lab 1, the mesh: the tasks, and what each says to an answer."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from hybridlab.checks import short_repr
from hybridlab.course.tasks.answers import mistake_behind, require_number, some_numbers
from hybridlab.course.tasks.checking import Feedback, right, task, wrong
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
    stage, replica = some_numbers(answer, 2, "stage or the replica of the rank")
    if (stage, replica) == tuple(mesh.coordinates(rank)):
        return right("23 = 4 x 5 + 3: four whole pipelines come before it, and in the fifth it is the device of stage 3")
    slips: dict[tuple[float, float], str] = {
        (4, 3): "these are the right numbers the wrong way round: the stage comes first",
        (5, 3): "you have divided by the 6 replicas: a pipeline has 5 ranks in a row, one a stage, so divide by 5",
        (3, 5): "you have divided by the 6 replicas: a pipeline has 5 ranks in a row, one a stage, so divide by 5",
        (2, 4): "this counts the ranks from 1: rank 0 is stage 0 of replica 0",
        (4, 5): "you have counted stages and replicas from 1: the first stage and the first replica are 0",
    }
    if (stage, replica) in slips:
        return wrong(slips[stage, replica])
    for value, name, count in ((stage, "stage", mesh.stages), (replica, "replica", mesh.replicas)):
        if value not in range(count):
            return wrong(f"there is no {name} {value:g} in this mesh: they are 0 to {count - 1}")
    return wrong(f"stage {stage:g} of replica {replica:g} is rank {mesh.rank(int(stage), int(replica))}: rank = replica x K + stage")


@task(
    "lab01.t2",
    title="Two groups of a new mesh",
    prompt="give the ranks of the stage group of stage 2, and those of the pipeline of replica 1, "
    "in a mesh of 4 stages and 3 replicas, as two lists",
)
def two_groups(answer: object) -> Feedback:
    """Judge the ranks of a stage group and of a pipeline."""
    if not isinstance(answer, list) or len(answer) != 2:
        raise HybridLabError(f"the answer is two lists of ranks, such as ([0, 1], [2, 3]), not {short_repr(answer)}")
    mesh = Mesh(stages=4, replicas=3)
    group, pipeline = mesh.stage_group(2), mesh.pipeline(1)
    found = _ranks(answer[0], mesh), _ranks(answer[1], mesh)
    if found == (group, pipeline):
        return right("a stage group has a rank from every pipeline, K apart; a pipeline has K ranks in a row")
    if found == (pipeline, group):
        return wrong("these are the right ranks the wrong way round: the stage group comes first")
    for ranks, truth, message in zip(found, (group, pipeline), ("stage group of stage 2", "pipeline of replica 1"), strict=True):
        if ranks != truth:
            return wrong(_about_group(mesh, ranks, truth, message))
    return wrong("the two lists are not those of this mesh")


def _ranks(value: object, mesh: Mesh) -> tuple[int, ...]:
    """Return a list of ranks in order, each checked against the mesh."""
    if not isinstance(value, list) or not value:
        raise HybridLabError(f"a group is a list of ranks, such as [0, 1], not {short_repr(value)}")
    numbers = [require_number(each, "a rank", "7") for each in value]
    for number in numbers:
        if number not in range(mesh.size):
            raise HybridLabError(f"there is no rank {number:g} in this mesh: they are 0 to {mesh.size - 1}")
    return tuple(sorted(int(number) for number in numbers))


def _about_group(mesh: Mesh, ranks: tuple[int, ...], truth: tuple[int, ...], message: str) -> str:
    for rank in ranks:
        if rank not in truth:
            place = mesh.coordinates(rank)
            return f"rank {rank} is not in the {message}: it is stage {place.stage} of replica {place.replica}"
    if len(set(ranks)) < len(ranks):
        return f"the {message} has each of its ranks once"
    return f"the {message} has more ranks than these: this mesh has {mesh.stages} stages and {mesh.replicas} replicas"


@task(
    "lab01.t3",
    title="Round the ring",
    prompt="give the rank that rank 20 sends its ring messages to, and the rank that it receives them from, "
    "in a mesh of 6 stages and 4 replicas, as (to, from)",
)
def round_the_ring(answer: object) -> Feedback:
    """Judge the two neighbours of a rank in its ring."""
    mesh, rank = Mesh(stages=6, replicas=4), 20
    found = some_numbers(answer, 2, "neighbour of rank 20 in its ring")
    ring = mesh.ring(mesh.coordinates(rank).stage)
    to = next(receiver for sender, receiver in ring if sender == rank)
    source = next(sender for sender, receiver in ring if receiver == rank)
    if found == [to, source]:
        return right("rank 20 is stage 2 of the last replica: its ring closes with the same stage of replica 0, rank 2")
    if found == [source, to]:
        return wrong("these are its two neighbours, but a ring message goes to the next replica: swap them")
    slips = [
        (26, "rank 26 would be the next, but the mesh ends at rank 23: the last replica sends to the first"),
        (21, "rank 21 is the next stage of the same replica: rank 20 sends it activations, but is not in a ring with it"),
        (19, "rank 19 is the stage before in the same replica: it is in another ring"),
        (16, "rank 16 is 4 ranks away: the copies of a stage are K = 6 ranks apart"),
        (0, "rank 0 is stage 0: a ring joins the copies of one stage"),
    ]
    mistake = next((sentence for value in found for known, sentence in slips if value == known and value not in (to, source)), None)
    hint = "first the coordinates of rank 20, then the same stage of the next replica and of the one before"
    return wrong(mistake or f"rank 20 does not have {found[0]:g} and {found[1]:g} as its neighbours: {hint}")


@task(
    "lab01.t4",
    title="Messages and bytes",
    prompt="give the number of messages along the pipelines, and the bytes of all ring messages, of a step with "
    "K=4, D=8, M=16 and 4000 gradients a stage in FP16, as (messages, bytes)",
    points=2,
)
def messages_and_bytes(answer: object) -> Feedback:
    """Judge the count of pipeline messages and the bytes of ring messages of a whole mesh."""
    stages, replicas, microbatches, size = 4, 8, 16, 4000
    messages, nbytes = some_numbers(answer, 2, "count of pipeline messages or of ring bytes")
    truth = 2 * (stages - 1) * microbatches * replicas
    sends = stages * replicas * 2 * (replicas - 1)
    ring = sends * FP16.nbytes(size // replicas)
    if messages != truth:
        slips = [
            (truth // replicas, "this is one pipeline: there are 8"),
            (truth // 2, "this counts one way: activations go on, and their gradients come back"),
            (2 * stages * microbatches * replicas, "this counts K = 4 boundaries: 4 stages in a row have 3"),
            (truth // microbatches, "this is one microbatch: each of the 16 sends its own messages"),
            (sends, "this is the number of ring messages"),
        ]
        hint = "count the boundaries of a pipeline, two messages a microbatch at each, and the pipelines"
        return wrong(mistake_behind(messages, slips, 0) or f"not {messages:g} messages along the pipelines: {hint}")
    if nbytes == ring:
        return right(f"{truth} messages along pipelines; {sends} ring messages of 500 numbers, 1000 bytes each")
    slips = [
        (sends * FP16.nbytes(size), "a ring message carries a chunk, an eighth of the gradients, not all 4000"),
        (ring // 2, "this is one byte a number, or half of the 2(D-1) messages of a rank: FP16 takes 2 bytes"),
        (2 * ring, "this is 2000 bytes a message: a ring cuts the gradients into D = 8 chunks, and FP16 takes 2 bytes a number"),
        (ring // stages, "this is one ring: there are 4, one a stage"),
        (ring // replicas, "this is what one rank of each ring sends: all 8 send"),
        (ring // (stages * replicas), "this is what one rank sends: there are 32"),
        (sends, "this is the number of ring messages: how many bytes has each?"),
    ]
    hint = "32 ranks send 2(D-1) messages each; how many numbers has one of D chunks of 4000?"
    return wrong(f"the messages are right, the bytes are not: {mistake_behind(nbytes, slips, 0) or hint}")


@task(
    "lab01.t5",
    title="Across nodes",
    prompt="give the messages of a step that cross nodes, numbered replica by replica and stage by stage, "
    "with K=2, D=8, M=8 and nodes of 4 devices, as two numbers",
    points=2,
)
def across_nodes(answer: object) -> Feedback:
    """Judge how many messages of a step leave their node under two ways of numbering the ranks."""
    mesh, microbatches, node = Mesh(stages=2, replicas=8), 8, 4
    found = some_numbers(answer, 2, "count of messages that cross nodes")
    layouts: list[Layout] = [lambda place: mesh.rank(*place), lambda place: place.stage * mesh.replicas + place.replica]
    links = [_crossing(mesh, layout, node) for layout in layouts]
    truth = [2 * microbatches * pipeline + 2 * (mesh.replicas - 1) * ring for pipeline, ring in links]
    if found == truth:
        return right("replica by replica only rings cross; stage by stage every pipeline does, and each ring of 8 fills two nodes")
    if found == truth[::-1]:
        return wrong("these are the right numbers the wrong way round: replica by replica comes first")
    if found == [sum(pair) for pair in links]:
        return wrong("these are links: a pipeline's link carries 2M messages a step, a ring's 2(D-1)")
    if found == [2 * microbatches * sum(pair) for pair in links] or found == [2 * (mesh.replicas - 1) * sum(pair) for pair in links]:
        return wrong("the links are right, but a pipeline's link carries 2M messages a step and a ring's 2(D-1)")
    for value, known, name, (pipeline, ring) in zip(found, truth, ("replica by replica", "stage by stage"), links, strict=True):
        if value != known:
            slips = [
                (microbatches * pipeline + 2 * (mesh.replicas - 1) * ring, "along a pipeline there are messages both ways"),
                (2 * microbatches * pipeline, "a ring of 8 does not fit into a node of 4: some of its links cross as well"),
                (2 * microbatches * pipeline + 4 * (mesh.replicas - 1) * ring, "a rank sends round its ring one way only"),
            ]
            hint = "which links leave their node, and how many messages does each carry?"
            return wrong(f"{name} it is not {value:g}: {mistake_behind(value, slips, 0) or hint}")
    return wrong("these are not the numbers of this mesh")


def _crossing(mesh: Mesh, layout: Layout, node: int) -> tuple[int, int]:
    """Return how many links of pipelines, and of rings, lead from one node to another."""
    pipelines = [pair for replica in range(mesh.replicas) for pair in pairwise(mesh.pipeline(replica))]
    rings = [pair for stage in range(mesh.stages) for pair in mesh.ring(stage)]

    def cross(links: Sequence[tuple[int, int]]) -> int:
        nodes = ((layout(mesh.coordinates(rank)) // node for rank in link) for link in links)
        return sum(first != second for first, second in nodes)

    return cross(pipelines), cross(rings)
