"""Lab 14, latency and imbalance: the tasks and what each says to an answer."""

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import counted, short_repr, whole_number
from hybridlab.costs import Costs
from hybridlab.course.tasks.answers import a_text, mistake_behind, near, require_number, some_numbers
from hybridlab.course.tasks.checking import Feedback, right, task, wrong
from hybridlab.errors import HybridLabError
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

DEVICES, MICROBATCHES, LATENCY = 8, 32, 10.0  # of task 2; times in ms
ROOM, SECOND_COPY = 12.0, 5.0  # in activations of a microbatch
LAYERS = np.array([2.0] + 14 * [4.0] + [12.0])  # forwards of task 4, ms
WHY_SLOW = {
    "1f1b": "K microbatches in flight are too few for the round trip: something has to give it work in the meantime",
    "zb-h1": "putting off the weight gradient hides a latency of half a weight gradient, 5 ms, and no more",
    "dualpipe-v": "folded, each microbatch crosses from device to device twice as often, and nothing is gained without overlap",
    "v-half": "it holds few microbatches, so few are on their way and the devices wait for them",
    "v-min": "it holds the fewest microbatches, so the fewest are on their way and the devices wait for them",
}
MANY = "the more chunks, the more messages: the bubble shrinks, the waiting grows faster"


@task(
    "lab14.t1",
    title="The crossing point",
    prompt="give the latency in ms from which eager 1F1B is faster than interleaved 1F1B with 2 chunks",
)
def the_crossing_point(answer: object) -> Feedback:
    """Judge the latency at which eager 1F1B overtakes interleaved, v = 2: K = 4, M = 16, F = 20, B = 30 ms."""
    latency = require_number(answer, "a latency in ms", "4.5")
    pair, bubbles, slopes = 50.0, (150.0, 75.0), (6, 14)  # eager, interleaved
    ahead = bubbles[0] - bubbles[1]
    if near(latency, ahead / (slopes[1] - slopes[0]), 0.01):
        return right("interleaved starts 75 ms ahead and loses 14 - 6 ms for each ms of latency, whatever M is")
    mistakes = [
        (bubbles[0] / 8, "messages go both ways, and interleaved keeps a bubble of (K-1)(F + B)/v: one of the two is missing"),
        (ahead / 6, "a message of interleaved also goes from the last device to the first: 2(vK-1) of them, not 2v(K-1)"),
        (ahead / 14, "eager 1F1B waits as well, for 2(K-1) messages: the difference of the two slopes counts"),
        (ahead / 22, "28 is the slope of 1F1B: eager 1F1B waits for 2(K-1) messages, 6"),
        (pair / 2, "25 ms is where eager 1F1B stops hiding its messages: the lines have crossed long before"),
        (10, "10 ms is a chunk's forward, where the closed form of interleaved ends: the lines cross before that"),
        (0, "without latency interleaved is ahead: its bubble is half as long"),
        (ahead, "75 ms is the head start of interleaved: how much of it does each ms of latency take?"),
    ]
    hint = "set (M + K-1)(F + B) + 2(K-1)C equal to (M + (K-1)/v)(F + B) + 2(vK-1)C"
    return wrong(mistake_behind(latency, mistakes, 0.01) or f"the lines do not cross at {latency:g} ms: {hint}")


@task(
    "lab14.t2",
    title="A schedule for a slow link",
    prompt="give the fastest schedule that fits and its chunks a device, as (name, chunks)",
    points=2,
)
def a_schedule_for_a_slow_link(answer: object) -> Feedback:
    """Judge a schedule and its chunks: 8 devices, 32 microbatches, 10 and 20 ms, a latency of 10 ms, room for 12 activations."""
    if not isinstance(answer, list) or len(answer) != 2:
        raise HybridLabError(f"the answer is a name and a number of chunks, such as ('interleaved', 2), not {short_repr(answer)}")
    name = a_text(answer[0], "the name of a schedule", "interleaved").strip().lower()
    chunks = _whole(answer[1], "a number of chunks", 1, 16)
    run = slow_link(name, chunks)
    need = float(run.peak_activations.max())
    message = f"{name} with {counted(chunks, 'chunk')} takes {run.makespan:.0f} ms"
    if _room(run) > ROOM:
        weights = f", and its second copy of the weights takes the room of {SECOND_COPY:g} more" * (run.schedule.copies - 1)
        return wrong(f"{name} does not fit: one of its devices holds {need:g} microbatches{weights}; there is room for {ROOM:g}")
    if run.makespan <= _fastest() * (1 + 1e-9):
        return right(f"{message} and holds {need:g} microbatches: it keeps halves of them, so that twice as many are on their way")
    lost = run.makespan - slow_link(name, chunks, 0.0).makespan
    why = MANY if chunks > 2 or name in ("interleaved", "interleaved-zb", "hanayo") else WHY_SLOW.get(name, "")
    return wrong(f"{message}, {lost:.0f} of them for messages: another one fits and is faster", *filter(None, [why]))


@task(
    "lab14.t3",
    title="Whose idle time",
    prompt="give the idle ms of all devices that the schedule loses, and those that the imbalance loses, as (schedule, imbalance)",
)
def whose_idle_time(answer: object) -> Feedback:
    """Judge the two parts of the idle time: 1F1B, 4 devices with forwards of 12, 10, 10, 14 ms, 12 microbatches, B = 2F."""
    values = some_numbers(answer, 2, "idle ms of one cause")
    forward = np.array([12.0, 10.0, 10.0, 14.0])
    run = simulate(build("1f1b", 4, 12), Costs(forward=forward, backward=2 * forward))
    most, busy, length = float(run.busy.max()), float(run.busy.sum()), float(run.makespan)
    schedule, imbalance = 4 * (length - most), 4 * most - busy
    if _alike(values, (schedule, imbalance)):
        return right("with as many microbatches as you like the first becomes small beside the work, the second grows with it")
    mistakes = [
        ((imbalance, schedule), "these are the right two, the other way round: what is left if the step took 504 ms is the imbalance"),
        ((schedule / 4, imbalance / 4), "these are means of a device: the question is about all four"),
        ((schedule / 4, imbalance), "the step is 96 ms longer than the work of the busiest device: that is lost on all four devices"),
        ((schedule + imbalance, 0.0), "compared with the mean of the busy times everything is bubble: compare with the busiest device"),
        ((480.0, 264.0), "(K-1)/(M + K-1) of the time is for equal stages: here take the step less the busiest device"),
        ((schedule / length / 4, imbalance / length / 4), "these are shares of the device time: give ms"),
        ((100 * schedule / length / 4, 100 * imbalance / length / 4), "these are per cent of the device time: give ms"),
    ]
    for known, sentence in mistakes:
        if _alike(values, known):
            return wrong(sentence)
    if near(sum(values), schedule + imbalance, 0.5):
        return wrong("together they are the whole idle time, but not so divided: how long would the step be at least?")
    return wrong(f"the devices idle for {schedule + imbalance:g} ms in all, these are {sum(values):g}: 4 x step less all busy times")


@task(
    "lab14.t4",
    title="Where to cut",
    prompt="give the numbers of layers on devices 0 to 3 that make the step shortest, such as [4, 4, 4, 4]",
    points=3,
)
def where_to_cut(answer: object) -> Feedback:
    """Judge a cut of 16 layers into 4 stages by the step it gives: 1F1B, 8 microbatches, backwards twice the forwards."""
    if isinstance(answer, list) and len(answer) == 3:
        raise HybridLabError("three numbers are the places of the cuts: give how many layers each of the 4 devices has")
    values = some_numbers(answer, 4, "number of layers of a device")
    if near(sum(values), LAYERS.sum(), 0.01):
        return wrong(f"{short_repr(answer)} are ms: give how many layers each device has, 16 in all")
    counts = [_whole(value, "a number of layers", 1, 16) for value in values]
    if sum(counts) != LAYERS.size:
        what = "these are the layers up to each cut: " if counts[-1] == LAYERS.size and counts == sorted(counts) else ""
        return wrong(f"{what}the four stages have {sum(counts)} layers, the model has {LAYERS.size}: embedding, 14 blocks, output layer")
    times = loads(counts)
    length, best = float(_steps(times[None])[0]), _shortest()
    slow = int(times.argmax())
    pace = f"device {slow} sets the pace, with {times[slow]:g} ms for a forward of its {counted(counts[slow], 'layer')}"
    message = f"the step takes {length:g} ms; {pace}"
    if length <= best * (1 + 1e-9):
        return right(f"{message}: nothing is lighter than that, and the heavy devices come first, where the warm-up gives them work")
    if times[slow] == 20:
        return wrong(
            message, "no cut has a lighter heaviest device, but it matters where the heavy ones stand: who waits for fill and drain?"
        )
    return wrong(message, "give it fewer layers, or, if it is the last, let the output layer stand with fewer blocks")


def slow_link(name: str, chunks: int | None = None, latency: float = LATENCY) -> Timeline:
    """Return the step of task 2 under a schedule.

    >>> float(slow_link("1f1b").makespan)
    1850.0
    """
    return simulate(build(name, DEVICES, MICROBATCHES, chunks), Costs(forward=10, backward=20, p2p=latency))


def loads(counts: Any) -> Floats:
    """Return the forward times of the stages of task 4 with so many layers each.

    >>> loads([4, 4, 4, 4]).tolist()
    [14.0, 16.0, 16.0, 24.0]
    """
    found: Floats = np.array([part.sum() for part in np.split(LAYERS, np.cumsum(counts)[:-1])])
    return found


def _steps(times: Floats) -> Floats:
    """Return the makespans of 1F1B with these forward times, one row of four a setting."""
    found: Floats = simulate(build("1f1b", 4, 8), Costs(forward=times, backward=2 * times)).makespan
    return found


@cache
def _shortest() -> float:
    """Return the shortest step of task 4, of all ways to cut."""
    cuts = [np.diff([0, *places, LAYERS.size]) for places in combinations(range(1, LAYERS.size), 3)]
    return float(_steps(np.array([loads(cut) for cut in cuts])).min())


@cache
def _fastest() -> float:
    """Return the shortest step of task 2 among the schedules that fit, with up to 8 chunks a device."""
    sizes = [(name, chunks) for name in REGISTRY for chunks in range(1, 9)]
    runs = [slow_link(*size) for size in sizes if REGISTRY[size[0]].refusal(DEVICES, MICROBATCHES, size[1]) is None]
    return min(float(run.makespan) for run in runs if _room(run) <= ROOM)


def _room(run: Timeline) -> float:
    return float(run.peak_activations.max()) + SECOND_COPY * (run.schedule.copies - 1)


def _whole(value: Any, what: str, least: int, most: int) -> int:
    number = require_number(value, what, "4")
    if number != int(number) or not least <= number <= most:
        raise HybridLabError(f"{what} is a whole number from {least} to {most}, not {number:g}")
    return whole_number(int(number), what)


def _alike(values: list[float], known: tuple[float, float]) -> bool:
    return all(near(value, true, max(0.002 * abs(true), 1e-3)) for value, true in zip(values, known, strict=True))
