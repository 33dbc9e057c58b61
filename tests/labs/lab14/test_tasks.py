"""Test lab 14's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from forms import form_by_form
from oracle import Node, nodes, partners, times, uniform
from solutions import lab_cells

from hybridlab import REGISTRY, Costs, build, check, simulate
from hybridlab.course.labs.lab14.tasks import slow_link
from hybridlab.course.tasks import TASKS, Case

Rows = list[dict[str, Any]]
Pairs = list[tuple[str, str]]


def ends_by_sweeps(orders: list[str], forward: float, backward: float, latency: float) -> dict[str, float]:
    """Ends in ms of all operations by sweeps until nothing changes."""
    end: dict[str, float] = {}
    while True:
        before = dict(end)
        for line in orders:
            free = 0.0
            for op in line.split():
                stage, kind, microbatch = re.split("([FB])", op)
                sender = f"{int(stage) + (-1 if kind == 'F' else 1)}{kind}{microbatch}"
                free = max(free, end.get(sender, -np.inf) + latency) + (forward if kind == "F" else backward)
                end[op] = free
        if end == before:
            return end


def last(rows: Rows) -> float:
    return sorted(row["end"] for row in rows)[-1]


def lost(free: Rows, late: Rows, path: list[str]) -> float:
    return last(late) - last(free)


def sent(rows: Rows, path: list[str]) -> Pairs:
    """The messages of a path, from its begin."""
    lines = [{row["op"] for row in rows if row["device"] == device} for device in range(5)]
    return [pair for pair in pairwise(path) if not any(line.issuperset(pair) for line in lines)]


def slowed(
    longer: Callable[..., float] = lost, change: Callable[[Pairs], Any] = lambda pairs: pairs, messages: Callable[..., Pairs] = sent
) -> Callable[..., Any]:
    """A program for lab14.t3; each argument changes one rule."""
    return lambda free, late, path: (longer(free, late, path), change(messages(late, path)))


def waited(free: Rows, late: Rows, path: list[str]) -> float:
    """All ms on the path in which no operation runs."""
    return last(late) - sum(row["end"] - row["start"] for row in late if row["op"] in path)


@cache
def length(microbatches: int, devices: int, forward: float, backward: float, latency: float, gpipe: bool) -> float:
    """GPipe or 1F1B by sweeps, without recomputation."""
    orders = []
    for device in range(devices):
        warm = microbatches if gpipe else min(devices - 1 - device, microbatches)
        ops = [f"{device}F{m}" for m in range(warm)]
        for m in range(microbatches - warm):
            ops += [f"{device}F{warm + m}", f"{device}B{m}"]
        ops += [f"{device}B{m}" for m in range(microbatches - warm, microbatches)]
        orders.append(" ".join(ops))
    return max(ends_by_sweeps(orders, forward, backward, latency).values())


def least(
    recompute: tuple[float, float] = (1, 0),
    reached: Callable[[float, float], bool] = lambda gpipe, other: gpipe <= other + 1e-9,
    of_gpipe: float = 1,
    first: Callable[[int], int] = lambda devices: 1,
    each: Callable[[int], int] = lambda devices: 1,
    none: Callable[[int], int] = lambda most: 0,
    pipeline: Callable[..., float] = length,
) -> Callable[..., int]:
    """A program for lab14.t4; each argument changes one rule. ``recompute`` is for GPipe and 1F1B."""

    def least_microbatches(devices: int, forward: float, backward: float, latency: float, most: int) -> int:
        for count in range(first(devices), most + 1, each(devices)):
            gpipe = length(count, devices, forward, backward + recompute[0] * forward, of_gpipe * latency, True)
            if reached(gpipe, pipeline(count, devices, forward, backward + recompute[1] * forward, latency, False)):
                return count
        return none(most)

    return least_microbatches


def by_rate(microbatches: int, devices: int, forward: float, backward: float, latency: float, gpipe: bool) -> float:
    return microbatches / devices * (devices * (forward + backward) + 2 * (devices - 1) * latency)


def for_good(devices: int, forward: float, backward: float, latency: float, most: int) -> int:
    since = 0
    for count in range(1, most + 1):
        waits = count - 2 - (count - 2) // devices if min(devices, count) > 1 else 0
        slower = (count + devices - 1) * forward > 2 * waits * latency
        since = 0 if slower else since or count
    return since


# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab14.t1", 18.75, "one-way-or-no-bubble"),
    ("lab14.t1", 12.5, "folded"),
    ("lab14.t1", 75 / 14, "eager-never-waits"),
    ("lab14.t1", 75 / 22, "1f1b"),
    ("lab14.t1", 25, "end-of-hiding"),
    ("lab14.t1", 10, "end-of-closed-form"),
    ("lab14.t1", 0, "no-latency"),
    ("lab14.t1", 75, "head-start"),
    ("lab14.t1", 9, "wrong-value", "9 ms"),
    ("lab14.t1", 9.4, "too-few-decimals", "2 decimals"),
    ("lab14.t1", "9.375", "not-a-number"),
    ("lab14.t1", [9.375], "not-a-number"),
    ("lab14.t2", ("zb-h2", 1), "does-not-fit", "zb-h2", "15 microbatches", "12"),
    ("lab14.t2", ("looped-bfs", 3), "does-not-fit", "looped-bfs", "32 microbatches"),
    ("lab14.t2", ("eager-1f1b", 1), "does-not-fit", "eager-1f1b"),
    ("lab14.t2", ("dualpipe", 1), "second-copy", "dualpipe", "5 more"),
    ("lab14.t2", ("zb-h1", 1), "hides-5-ms"),
    ("lab14.t2", ("1f1b", 1), "too-few-in-flight"),
    ("lab14.t2", ("v-half", 2), "few-in-flight"),
    ("lab14.t2", ("v-min", 2), "fewest-in-flight"),
    ("lab14.t2", ("interleaved", 2), "many-chunks"),
    ("lab14.t2", ("interleaved-zb", 4), "many-chunks"),
    ("lab14.t2", ("hanayo", 2), "many-chunks"),
    ("lab14.t2", ("chimera", 1), "second-copy", "chimera", "8 microbatches", "5 more"),
    ("lab14.t2", ("dualpipe-v", 2), "folded-without-overlap"),
    ("lab14.t2", ("zb-v", 1), "unsupported-size", "zb-v", "2 chunks"),
    ("lab14.t2", ("hanayo", 3), "unsupported-size", "hanayo", "2, 4, 6"),
    ("lab14.t2", ("zbv", 2), "unknown-name", "'zb-v'"),
    ("lab14.t2", ("zb-v", 2.5), "not-a-whole-number"),
    ("lab14.t2", ("interleaved", 10**6), "out-of-range", "1 to 16"),
    ("lab14.t2", "zb-v", "wrong-shape"),
    ("lab14.t3", slowed(longer=lambda free, late, path: last(late)), "whole-step", "it is not"),
    ("lab14.t3", slowed(longer=waited), "messages-times-latency"),
    ("lab14.t3", slowed(longer=lambda *given: last(given[1]) - waited(*given)), "work-of-the-path"),
    ("lab14.t3", slowed(longer=lambda *given: lost(*given) + 0.25), "wrong-slowdown", "0.25 ms longer"),
    ("lab14.t3", slowed(messages=lambda late, path: [*pairwise(path)]), "all-neighbours", "on one device"),
    ("lab14.t3", slowed(messages=lambda late, path: [pair for pair in pairwise(path) if pair[0][0] != pair[1][0]]), "stages-for-devices"),
    ("lab14.t3", slowed(change=lambda pairs: [pair for pair in pairs if "F" in pair[0]]), "forwards-alone"),
    ("lab14.t3", slowed(change=lambda pairs: pairs[::-1]), "last-message-first"),
    ("lab14.t3", slowed(change=lambda pairs: [pair[::-1] for pair in pairs]), "receiver-first"),
    ("lab14.t3", slowed(change=lambda pairs: []), "missing-message", "from 0F0 to 1F0"),
    ("lab14.t3", slowed(change=lambda pairs: pairs[1:]), "missing-message"),
    ("lab14.t3", slowed(change=lambda pairs: pairs[:-1]), "missing-message"),
    ("lab14.t3", slowed(change=lambda pairs: pairs + pairs[:1]), "wrong-order"),
    ("lab14.t3", slowed(change=lambda pairs: [(one, other.replace("1F0", "1F9")) for one, other in pairs]), "no-message", "1F9"),
    ("lab14.t3", lambda *given: lost(*given), "wrong-shape"),
    ("lab14.t3", lambda *given: (sent(*given[1:]), lost(*given)), "exchanged"),
    ("lab14.t3", slowed(change=set), "not-a-list"),
    ("lab14.t3", slowed(change=dict), "not-a-list"),
    ("lab14.t3", slowed(change=lambda pairs: [other for _, other in pairs]), "not-a-message", "'1F0'"),
    ("lab14.t3", slowed(longer=lambda *given: float("nan")), "not-a-number"),
    ("lab14.t3", lambda free: (0, []), "signature"),
    ("lab14.t3", 40, "not-a-function"),
    ("lab14.t4", least(recompute=(0, 0)), "same-recomputation"),
    ("lab14.t4", least(recompute=(1, 1)), "same-recomputation"),
    ("lab14.t4", least(reached=lambda gpipe, other: gpipe < other - 1e-9), "strictly-faster"),
    ("lab14.t4", least(first=lambda devices: devices, each=lambda devices: devices), "multiples-of-k"),
    ("lab14.t4", least(first=lambda devices: devices), "from-k"),
    ("lab14.t4", lambda *given: least()(*given[:4], given[4] - 1), "most-left-out"),
    ("lab14.t4", least(of_gpipe=0), "gpipe-never-waits"),
    ("lab14.t4", least(pipeline=by_rate), "rate-alone"),
    ("lab14.t4", least(none=lambda most: most), "most-for-none"),
    ("lab14.t4", least(none=lambda most: most + 1), "gpipe-is-slower"),
    ("lab14.t4", lambda *given: max(least()(*given) - 1, 0), "last-before"),
    ("lab14.t4", for_good, "for-good"),
    ("lab14.t4", lambda *given: 0, "none-found"),
    ("lab14.t4", lambda *given: least()(*given[:4], 60), "beyond-the-most"),
    ("lab14.t4", lambda *given: least()(*given) and least()(*given) + 3, "not-the-least"),
    ("lab14.t4", lambda *given: float("nan"), "not-a-number"),
    ("lab14.t4", lambda *given: -1, "out-of-range"),
    ("lab14.t4", lambda *given: 2.5, "not-a-whole-number"),
    ("lab14.t4", lambda *given: [3], "not-a-number"),
    ("lab14.t4", lambda devices: 3, "signature"),
    ("lab14.t4", 9, "not-a-function"),
]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab14.t1", 9.37),
    ("lab14.t1", 9.38),
    ("lab14.t1", np.float64(9.375)),
    ("lab14.t1", Fraction(75, 8)),
    ("lab14.t2", [" ZB-V ", 2.0]),
    ("lab14.t2", ("zb-v", np.int64(2))),
    ("lab14.t3", slowed()),
    ("lab14.t3", lambda *given: [np.float64(lost(*given)), tuple(map(list, sent(*given[1:])))]),
    ("lab14.t4", least()),
    ("lab14.t4", form_by_form(least(), float, np.int64)),
]


def numbers_of(key: str, seed: int | None) -> list[int]:
    """The whole numbers in the prompt of a task."""
    return [int(number) for number in re.findall(r"\b\d+\b", TASKS[key].instance(seed).prompt)]


@in_turn("seed", [None, *range(5)])
def test_the_lines_of_task_1_cross_once_at_the_latency_that_passes(seed: int | None) -> None:
    _, chunks, devices, microbatches, forward, backward = numbers_of("lab14.t1", seed)
    assert chunks == 2

    def ahead(latency: float) -> float:
        costs = Costs(forward=forward, backward=backward, p2p=latency)
        eager, interleaved = (simulate(build(name, devices, microbatches), costs) for name in ("eager-1f1b", "interleaved"))
        return float(eager.makespan - interleaved.makespan)

    crossing = (devices - 1) * (forward + backward) / (4 * devices)
    assert seed is not None or crossing == 9.375
    assert ahead(crossing) == pytest.approx(0)
    assert check("lab14.t1", crossing, seed=seed).passed
    assert all(ahead(latency) > 0 for latency in np.linspace(0, crossing - 0.01, 8))
    assert all(ahead(latency) < 0 for latency in np.linspace(crossing + 0.01, 40, 16))


@pytest.mark.parametrize("most", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_no_schedule_that_fits_is_faster_than_the_one_that_passes(most: int) -> None:
    """The oracle computes the steps. The peaks of faster schedules are from their papers, the other peaks are counted here."""
    setting = uniform(8, 10, 20, p2p=10)
    activations = {"zb-h2": 15, "looped-bfs": 32, "eager-1f1b": 15, "gpipe": 32, "chimera": 8}  # 2K-1, M, 2K-1, M, K
    fast = set()
    for name, family in REGISTRY.items():
        for chunks in range(1, most + 1):
            if family.refusal(8, 32, chunks) is None and (name, chunks) != ("zb-v", 2):
                schedule = build(name, 8, 32, chunks)
                spans = times(nodes(schedule), setting, chunks, together=partners(schedule))
                if max(end for _, end in spans.values()) <= 1375:
                    fast.add(name)
                    held = activations[name] if name in activations else max(map(most_held, nodes(schedule))) / chunks
                    assert held + 5 * (family.copies - 1) > 12, f"{name} fits: it takes the place of the right answer"
    assert slow_link("zb-v").makespan == 1375
    assert fast >= set(activations)


def most_held(order: list[Node]) -> int:
    """The most stages of microbatches that a device holds at once: from the forward to the full backward or the weight gradient."""
    return max(accumulate((kind == "F") - (kind in "BW") for kind, _, _ in order))


@cache
def cases_of(key: str, seed: int) -> list[Case]:
    return list(TASKS[key].instance(None).data.cases(np.random.default_rng(seed)))


def test_the_step_grows_by_at_most_the_latency_of_each_message_on_the_path() -> None:
    """In some of the cases it grows by less, and a program that multiplies the messages by the latency fails there."""
    cases = [case.arguments for case in cases_of("lab14.t3", 0)]
    grown = [lost(*arguments) for arguments in cases]
    messages = [waited(*arguments) for arguments in cases]
    assert all(longer <= late + 1e-9 for longer, late in zip(grown, messages, strict=True))
    assert any(0 < longer < late - 1e-9 for longer, late in zip(grown, messages, strict=True))


def test_the_examples_of_the_builds_in_the_lab_are_right() -> None:
    text = "\n".join(cell.source for cell in lab_cells("lab14") if cell.kind == "markdown")
    ((lines, call, result),) = re.findall(r"((?:>>> \w+(?:, \w+)? = .*\n)+)>>> slowdown\((.*)\)\n(.*)\n", text)
    names: dict[str, Any] = {"build": build, "simulate": simulate, "Costs": Costs}
    exec(lines.replace(">>> ", ""), names)  # noqa: S102 - text of our own lab
    assert slowed()(*eval(f"[{call}]", names)) == eval(result)  # noqa: S307
    counts = re.findall(r">>> least_microbatches\((.*)\)\n(\d+)\n", text)
    assert len(counts) == 2
    for arguments, result in counts:
        assert least()(*eval(f"[{arguments}]")) == int(result)  # noqa: S307 - text of our own lab


@in_turn("devices", [1, 2, 3, 4, 5])
def test_what_the_lab_says_about_gpipe_and_1f1b_holds_for_equal_devices(devices: int) -> None:
    """M + K - 1 pairs and the messages: 2(K-1) for GPipe; 1F1B has 2 more for each M from 3 on, but not for each K-th."""
    for microbatches in range(1, 14):
        for forward, backward, latency in [(10, 20, 1), (1, 5, 3), (6, 2, 9), (3, 3, 0.5), (5, 1, 40)]:
            more = sum(place % devices != 0 for place in range(1, microbatches - 1)) if devices > 1 else 0
            gpipe = (microbatches + devices - 1) * (forward + backward) + 2 * (devices - 1) * latency
            costs = Costs(forward=forward, backward=backward, p2p=latency)
            assert simulate(build("gpipe", devices, microbatches), costs).makespan == pytest.approx(gpipe)
            assert simulate(build("1f1b", devices, microbatches), costs).makespan == pytest.approx(gpipe + 2 * more * latency)
            assert (more > 0) == (devices > 1 and microbatches > 2)


@in_turn("devices", [2, 3, 4])
def test_gpipe_that_recomputes_catches_up_only_if_a_message_is_slow_enough(devices: int) -> None:
    least_latency = devices * 10 / (2 * (devices - 1))
    assert least()(devices, 10, 20, least_latency, 40) == 0
    assert least()(devices, 10, 20, 1.5 * least_latency, 40) > 0


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_the_cases_of_both_builds_have_every_edge(seed: int) -> None:
    words = [case.words for case in cases_of("lab14.t4", seed)]
    answers = [least()(*case.arguments) for case in cases_of("lab14.t4", seed)]
    assert any(word.startswith("1 device,") for word in words)
    assert any("latency 0 ms" in word for word in words)
    assert answers.count(0) >= 4
    assert len(set(answers)) > 4
    steps = [case.arguments for case in cases_of("lab14.t3", seed)]
    assert {1, 2, 3} <= {len({row["device"] for row in late}) for _, late, _ in steps}
    assert any(free == late for free, late, _ in steps)
    assert any(not sent(late, path) for _, late, path in steps)
