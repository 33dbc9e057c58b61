"""Lab 12, chunks and waves: the tasks and the feedback on their answers."""

from collections.abc import Iterable
from functools import cache

from hybridlab import formulas
from hybridlab.costs import Costs
from hybridlab.course.tasks.expressions import Mistake, Table, filled
from hybridlab.course.tasks.questions import Number, Question, number_task
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate

LAYERS = 24  # layers of each device in task 4


@number_task("lab12.t1", title="Fold it twice", draws={"devices": (3, 4, 5), "chunks": (4, 6)})
def fold_it_twice(devices: int = 3, chunks: int = 4) -> Question:
    """Ask for the device of every stage in the folded placement."""
    truth = list(REGISTRY["hanayo"].device_of(devices, chunks))
    stages, last = range(len(truth)), devices - 1
    there_and_back = [*range(devices), *range(last - 1, 0, -1)]

    directions = (f"up from device 0 to device {last}", f"down from device {last} to device 0")
    held = [f"count(value, {device})" for device in range(devices)]
    placement = Number(
        "device of a stage",
        truth,
        hint="stage {place} is not on device {value[place]:g}: chunk {chunks[place]} runs {directions[place]}",
        given={
            "devices": range(devices),
            "chunks": [stage // devices for stage in stages],
            "directions": [directions[stage // devices % 2] for stage in stages],
        },
        fields=[f"Device of stage {stage}" for stage in stages],
        mistakes=[
            ([device + 1 for device in truth], "devices-from-1", f"devices are counted from 0: the last one is device {last}"),
            (
                [last - device for device in truth],
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
                f"each device has {chunks} stages in a row: that is one chunk, {'four' if chunks == 4 else 'six'} times as long",
            ),
            (
                [there_and_back[stage % len(there_and_back)] for stage in stages],
                "one-stage-a-turn",
                "at a turn two stages are on one device: where a chunk ends, the next one begins on the same device",
            ),
            (
                "len(without(value, devices)) > 0",
                "no-such-device",
                f"there is no device {{without(value, devices)[0]:g}}: the devices are {_listed(range(devices))}",
            ),
            (
                " or ".join(f"{count} != {chunks}" for count in held),
                "uneven",
                f"devices {_listed(range(devices))} hold {_listed(f'{{{count}}}' for count in held)} stages: "
                f"each holds {chunks}, one of every chunk",
            ),
        ],
    )
    return Question(
        f"give the device of each of the {len(truth)} stages of {devices} devices with {chunks} chunks each, folded, "
        f"as a list of {len(truth)} numbers",
        [placement],
        f"{'two' if chunks == 4 else 'three'} waves: at each turn two stages in a row stand on one device, "
        "and nothing is sent between them",
    )


@number_task("lab12.t2", title="Messages of a step", draws={"devices": (4, 5, 6), "groups": (2, 3), "chunks": (4, 6)})
@cache
def messages_of_a_step(devices: int = 6, groups: int = 2, chunks: int = 4) -> Question:
    """Ask for the messages of interleaved 1F1B and of Hanayo, with as many groups of K microbatches."""
    microbatches = groups * devices
    looped, folded = (float(build(name, devices, microbatches, chunks).messages.sum()) for name in ("interleaved", "hanayo"))
    one_chunk = 2 * (devices - 1) * microbatches  # messages of a pipeline with one chunk a device

    def messages(name: str, truth: float, between_chunks: Mistake) -> Number:
        mistakes: list[Mistake] = [
            between_chunks,
            (truth / microbatches, "one-microbatch-alone", f"this is one microbatch: there are {microbatches}"),
            (truth / 2, "one-way", "this counts one direction: each activation that goes there comes back as a gradient"),
            (
                truth / 2 / microbatches,
                "one-microbatch-one-way",
                f"this counts one microbatch in one direction: there are {microbatches}, and their gradients come back",
            ),
            (
                one_chunk,
                "no-chunks",
                f"this is a pipeline without chunks: with {chunks} of them each microbatch passes the devices {chunks} times",
            ),
            (
                2 * chunks * devices * microbatches,
                "one-an-operation",
                "this is one message for each operation: the last forward and the last backward send none",
            ),
        ]
        hint = "not {value} messages; count how often one microbatch moves to another device, there and back"
        return Number("number of messages of a schedule", truth, hint, mistakes, label=f"{name}: ", fields=(f"Messages of {name}",))

    at_ends = "the messages from chunk to chunk are missing: the last device sends to the first"
    at_turns = "where a chunk ends the next one begins on the same device: a turn needs no message"
    swapped = "these are the right numbers in the wrong order: interleaved 1F1B comes first, and Hanayo saves messages"
    return Question(
        "give how many messages all devices send in a step of interleaved 1F1B and of Hanayo, "
        f"with {devices} devices, {microbatches} microbatches and {chunks} chunks, as [number, number]",
        [
            messages("interleaved 1F1B", looped, (chunks * one_chunk, "no-message-between-chunks", at_ends)),
            messages("Hanayo", folded, (looped, "messages-at-turns", at_turns)),
        ],
        "at each of the v - 1 turns of the fold a microbatch saves two messages, one on the way there and one on the way back",
        [([folded, looped], "swapped", swapped)],
    )


@number_task(
    "lab12.t3",
    title="A step by formula",
    draws={"devices": (4, 5), "groups": (2, 3), "chunks": (3, 4), "forward": (12, 24), "latency": (1, 2)},
)
def a_step_by_formula(devices: int = 4, groups: int = 3, chunks: int = 3, forward: int = 12, latency: int = 2) -> Question:
    """Ask for interleaved 1F1B's makespan, with a backward of twice the forward and as many groups of K microbatches."""
    backward, microbatches, passed = 2 * forward, groups * devices, chunks * devices - 1  # passed: boundaries between stages
    truth = formulas.interleaved_makespan(devices, microbatches, chunks, forward, backward, latency)
    # of all microbatches; of a message there and back; fill and drain without chunks
    work, both_ways, fill = microbatches * 3 * forward, 2 * latency, (devices - 1) * 3 * forward
    fill_of_chunks = fill / chunks
    time = Number(
        "a makespan in ms",
        truth,
        hint="the step does not take {value} ms: add up M(F+B), (K-1)(F+B)/v and 2(vK-1)C",
        mistakes=[
            (work + fill_of_chunks, "no-messages", "this lacks the messages: the step waits for 2(vK-1) of them"),
            (work + passed * both_ways, "no-fill-and-drain", "this lacks fill and drain, (K-1)(F+B)/v"),
            (
                work + fill + passed * both_ways,
                "1f1b",
                "this has the fill and drain of 1F1B: with chunks they are divided by v",
            ),
            (
                work + fill_of_chunks + passed * latency,
                "one-way",
                "these are the messages on the way there: the same number comes back",
            ),
            (
                work + fill_of_chunks + (passed + 1) * both_ways,
                "vk-messages",
                "one message too many in each direction: the last of the vK stages has no next stage",
            ),
            (
                work + fill_of_chunks + (devices - 1) * both_ways,
                "messages-of-one-chunk",
                f"without chunks the step waits for 2(K-1) messages: here a microbatch passes {passed + 1} stages",
            ),
            (
                work + fill_of_chunks + chunks * (devices - 1) * both_ways,
                "folded",
                "2v(K-1) messages are those of a folded placement: here a message also goes from each chunk to the next",
            ),
            (
                work + fill_of_chunks + microbatches * passed * both_ways,
                "all-microbatches",
                f"this has the messages of all {microbatches} microbatches: the step waits for those of only one microbatch",
            ),
            (
                work / chunks + fill_of_chunks + passed * both_ways,
                "work-divided",
                f"the work of a device is not divided: {chunks} chunks of a {'third' if chunks == 3 else 'quarter'} each",
            ),
            (work, "work-alone", "this is only the work of a device: add fill, drain and messages"),
            (truth / 1000, "seconds", "this is in seconds: give ms"),
        ],
        decimals=2,
        example="480",
    )
    return Question(
        f"give the makespan in ms of interleaved 1F1B with {chunks} chunks on {devices} devices, {microbatches} microbatches, "
        f"a forward of {forward} and a backward of {backward} ms, and a latency of {latency} ms",
        [time],
        "chunks divide fill and drain by v; the step waits for 2(vK-1) messages, with any number of microbatches",
    )


@number_task("lab12.t4", title="How many chunks?", points=3, draws={"latency": (3, 4, 5, 6)})
@cache
def how_many_chunks(latency: int = 3) -> Question:
    """Ask for the best cuts of 24 layers: 8 devices, 16 microbatches, a forward of 48 and a backward of 96 ms."""
    names = ("interleaved", "looped-bfs")
    steps = [{cut: makespan(name, 8, 16, cut, 48, latency) for cut in range(2, LAYERS + 1) if LAYERS % cut == 0} for name in names]
    best = [min(times, key=times.__getitem__) for times in steps]
    cuts = ", ".join(str(cut) for cut in steps[0] if cut < LAYERS)
    work, fill = 16 * 144, 7 * 144

    given = {
        "names": [REGISTRY[name].title for name in names],
        "cuts": [*steps[0]],
        "step": Table(lambda rows: [steps[place][cut] for place, cut in rows], [(place, cut) for place in (0, 1) for cut in steps[0]]),
    }
    takes = "{names[place]} takes {step(place, value[place]):.1f} ms with {value[place]:g} chunks"
    fills, waits = f"{fill} / value[place]", f"step(place, value[place]) - {work} - {fill} / value[place]"
    why = "looped BFS waits for only 2(K-1) messages if a message takes no longer than a chunk's forward; but it needs more memory"
    chunks = Number(
        "number of chunks",
        best,
        hint=f"{takes}, of which {{{waits}:.1f}} ms are waits for messages: fewer chunks make the step shorter",
        given=given,
        fields=[f"Chunks of {name}" for name in ("interleaved 1F1B", "looped BFS")],
        code="too-many",
        mistakes=[
            (
                "value[place] not in cuts",
                "not-divisible",
                f"{LAYERS} layers make chunks of the same size if there are {cuts} or {LAYERS} of them, not {{value[place]:g}}",
            ),
            (
                "value[place] < truth[place]",
                "too-few",
                f"{takes}, of which {{{fills}:.1f}} ms are fill and drain: more chunks make the step shorter",
            ),
        ],
    )
    return Question(
        "give the number of chunks with the shortest step for interleaved 1F1B and for looped BFS, "
        f"at a latency of {latency} ms, as [number, number]",
        [chunks],
        f"{'; '.join(filled(takes, {**given, 'value': best, 'place': place}) for place in range(2))}\n{why}",
    )


def makespan(name: str, devices: int, microbatches: int, chunks: int, forward: float, latency: float) -> float:
    """Return the makespan of a schedule whose backward takes twice as long as its forward.

    >>> makespan("interleaved", 8, 16, 2, forward=50, latency=4)
    3045.0
    """
    costs = Costs(forward=forward, backward=2 * forward, p2p=latency)
    return float(simulate(build(name, devices, microbatches, chunks), costs).makespan)


def _listed(items: Iterable[object]) -> str:
    """Return the items as words, such as "0, 1 and 2"."""
    *first, last = map(str, items)
    return f"{', '.join(first)} and {last}"
