"""Lab 12, chunks and waves: the tasks and the feedback on their answers."""

from hybridlab.costs import Costs
from hybridlab.course.tasks.answers import Mistake, require_number, require_numbers
from hybridlab.course.tasks.checking import Feedback, judge_value, right, task, wrong, wrong_value
from hybridlab.errors import HybridLabError
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate

LAYERS = 24  # layers of each device in task 4


@task(
    "lab12.t1",
    title="Fold it twice",
    prompt="give the device of each of the 12 stages of 3 devices with 4 chunks each, folded, as a list of 12 numbers",
)
def fold_it_twice(answer: object) -> Feedback:
    """Judge the folded placement of 4 chunks on each of 3 devices: the device of every stage."""
    devices, chunks = 3, 4
    truth = list(REGISTRY["hanayo"].device_of(devices, chunks))
    values = require_numbers(answer, len(truth), "device of a stage")
    if values == truth:
        return right("two waves: at each turn two stages in a row stand on one device, and nothing is sent between them")
    stages = range(len(truth))
    mistakes: list[Mistake] = [
        ([device + 1 for device in truth], "devices-from-1", "devices are counted from 0: the last one is device 2"),
        (
            [devices - 1 - device for device in truth],
            "reversed",
            "this is folded, but it begins on the last device: stage 0 is on device 0",
        ),
        (
            [stage % devices for stage in stages],
            "looped",
            "this is the looped placement: in the folded one every second chunk runs backwards",
        ),
        (
            [stage // chunks for stage in stages],
            "one-long-chunk",
            "each device has 4 stages in a row: that is one chunk, four times as long",
        ),
        (
            [0, 1, 2, 1] * 3,
            "one-stage-a-turn",
            "at a turn two stages are on one device: where a chunk ends, the next one begins on the same device",
        ),
    ]
    outside = [value for value in values if value not in range(devices)]
    if outside:
        return wrong_value(values, mistakes, f"there is no device {outside[0]:g}: the three devices are 0, 1 and 2", code="no-such-device")
    counts = [values.count(device) for device in range(devices)]
    if set(counts) != {chunks}:
        there = f"devices 0, 1 and 2 hold {counts[0]}, {counts[1]} and {counts[2]} stages"
        return wrong_value(values, mistakes, f"{there}: each holds 4, one of every chunk", code="uneven")
    stage = next(stage for stage in stages if values[stage] != truth[stage])
    direction = "down from device 2 to device 0" if stage // devices % 2 else "up from device 0 to device 2"
    hint = f"stage {stage} is not on device {values[stage]:g}: chunk {stage // devices} runs {direction}"
    return wrong_value(values, mistakes, hint)


@task(
    "lab12.t2",
    title="Messages of a step",
    prompt="give how many messages all devices send in a step of interleaved 1F1B and of Hanayo, as [number, number]",
)
def messages_of_a_step(answer: object) -> Feedback:
    """Judge the messages of interleaved 1F1B and of Hanayo: 6 devices, 12 microbatches, 4 chunks."""
    devices, microbatches, chunks = 6, 12, 4
    values = require_numbers(answer, 2, "number of messages of a schedule")
    truth = [float(build(name, devices, microbatches, chunks).messages.sum()) for name in ("interleaved", "hanayo")]
    if values == truth:
        return right("a fold saves two messages a microbatch at each of its v - 1 turns, one on the way there and one back")
    if values == truth[::-1]:
        return wrong("swapped", "these are the right numbers in the wrong order: interleaved 1F1B comes first, and Hanayo saves messages")
    one_chunk = 2 * (devices - 1) * microbatches  # messages of a pipeline with one chunk a device
    between_chunks: list[Mistake] = [
        (chunks * one_chunk, "no-message-between-chunks", "the chunks also send to each other, from the last device to the first"),
        (truth[0], "messages-at-turns", "where a chunk ends the next one begins on the same device: a turn needs no message"),
    ]
    place = 0 if values[0] != truth[0] else 1
    value, true = values[place], truth[place]
    mistakes: list[Mistake] = [
        between_chunks[place],
        (true / microbatches, "one-microbatch-alone", "this is one microbatch: there are 12"),
        (true / 2, "one-way", "this is one way: what goes there as a forward comes back as a backward"),
        (
            true / 2 / microbatches,
            "one-microbatch-one-way",
            "this is one microbatch on its way there: there are 12, and all come back",
        ),
        (
            one_chunk,
            "no-chunks",
            "this is a pipeline without chunks: with 4 of them each microbatch passes the devices 4 times",
        ),
        (
            2 * chunks * devices * microbatches,
            "one-an-operation",
            "this is one message for each operation: the last forward and the last backward send none",
        ),
    ]
    hint = f"not {value:g} messages; count how often one microbatch changes the device, there and back"
    return wrong_value(value, mistakes, hint, about=f"{('interleaved 1F1B', 'Hanayo')[place]}: ")


@task(
    "lab12.t3",
    title="A step by formula",
    prompt="give the makespan in ms of interleaved 1F1B with 3 chunks on 4 devices, 12 microbatches and a latency of 2 ms",
)
def a_step_by_formula(answer: object) -> Feedback:
    """Judge interleaved 1F1B's makespan: 4 devices, 12 microbatches, 3 chunks, forward 12, backward 24, latency 2 ms."""
    time = require_number(answer, "a makespan in ms", "480")
    truth = makespan("interleaved", 4, 12, 3, 12, 2)
    work, both_ways, fill = 12 * 36, 2 * 2, 3 * 36  # of all microbatches; a message there and back; fill and drain without chunks
    return judge_value(
        time,
        truth,
        0.01,
        lesson="fill and drain are divided by v; 2(vK-1) messages are waited for, once, however many microbatches there are",
        mistakes=[
            (work + fill / 3, "no-messages", "this lacks the messages: 2(vK-1) of them are waited for"),
            (work + 11 * both_ways, "no-fill-and-drain", "this lacks fill and drain, (K-1)(F+B)/v"),
            (
                work + fill + 11 * both_ways,
                "1f1b",
                "this has the fill and drain of 1F1B: with chunks they are divided by v",
            ),
            (work + fill / 3 + 11 * 2, "one-way", "these are the messages on the way there: as many come back"),
            (
                work + fill / 3 + 12 * both_ways,
                "vk-messages",
                "one message too many each way: the last of the vK stages sends none on",
            ),
            (
                work + fill / 3 + 3 * both_ways,
                "messages-of-one-chunk",
                "2(K-1) messages are waited for where there are no chunks: here a microbatch passes 12 stages",
            ),
            (
                work + fill / 3 + 9 * both_ways,
                "folded",
                "2v(K-1) messages are those of a folded placement: here each chunk sends to the next as well",
            ),
            (
                work + fill / 3 + 12 * 11 * both_ways,
                "all-microbatches",
                "this has the messages of all 12 microbatches: those of the others travel while devices compute",
            ),
            (work / 3 + fill / 3 + 11 * both_ways, "work-divided", "the work of a device is not divided: 3 chunks of a third each"),
            (work, "work-alone", "this is the work of a device alone: fill, drain and messages come on top"),
            (truth / 1000, "seconds", "this is in seconds: give ms"),
        ],
        hint=f"the step does not take {time:g} ms: add up M(F+B), (K-1)(F+B)/v and 2(vK-1)C",
    )


@task(
    "lab12.t4",
    title="How many chunks?",
    prompt="give the number of chunks with the shortest step for interleaved 1F1B and for looped BFS, as [number, number]",
    points=3,
)
def how_many_chunks(answer: object) -> Feedback:
    """Judge the best cuts of 24 layers: 8 devices, 16 microbatches, forward 48, backward 96, latency 3 ms."""
    values = require_numbers(answer, 2, "number of chunks")
    steps = []
    for name, value in zip(("interleaved", "looped-bfs"), values, strict=True):
        chunks = _chunks_of_layers(value)
        times = {cut: makespan(name, 8, 16, cut, 48, 3) for cut in range(2, LAYERS + 1) if LAYERS % cut == 0}
        best = min(times, key=times.__getitem__)
        step = f"{REGISTRY[name].title} takes {times[chunks]:.1f} ms with {chunks} chunks"
        fill = 7 * 144 / chunks
        if chunks < best:
            return wrong("too-few", f"{step}, and less with more: {fill:.1f} ms of it are fill and drain")
        if chunks > best:
            waits = times[chunks] - 16 * 144 - fill
            return wrong("too-many", f"{step}, and less with fewer: {waits:.1f} ms of it are waits for messages")
        steps.append(step)
    why = "looped BFS waits for 2(K-1) messages, as long as one takes no longer than a chunk's forward; memory is its price"
    return right("; ".join(steps), why)


def makespan(name: str, devices: int, microbatches: int, chunks: int, forward: float, latency: float) -> float:
    """Return the makespan of a schedule whose backward takes twice as long as its forward.

    >>> makespan("interleaved", 8, 16, 2, forward=50, latency=4)
    3045.0
    """
    costs = Costs(forward=forward, backward=2 * forward, p2p=latency)
    return float(simulate(build(name, devices, microbatches, chunks), costs).makespan)


def _chunks_of_layers(value: float) -> int:
    """Return the number of chunks if the layers of a device can be cut into so many, or raise."""
    if value not in range(2, LAYERS + 1) or LAYERS % value:
        cuts = ", ".join(str(cut) for cut in range(2, LAYERS) if LAYERS % cut == 0)
        wanted = f"{LAYERS} layers make chunks of the same size if there are {cuts} or {LAYERS} of them"
        raise HybridLabError(f"{wanted}, not {value:g}", "not-divisible")
    return int(value)
