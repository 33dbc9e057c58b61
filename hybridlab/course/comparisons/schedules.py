"""Comparisons of schedules and of the clock with reference runs and with the Zero Bubble paper."""

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

from hybridlab.checks import checked_text, counted, each_of, known_name, short_repr
from hybridlab.costs import Costs
from hybridlab.course.comparisons.comparison import Comparison, compared
from hybridlab.course.published import zero_bubble
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Op
from hybridlab.schedules import build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline

REFERENCE = "other programs"
ZERO_BUBBLE = "Qi et al. 2024"
PAPER_NAMES = {"1f1b": "1F1B", "zb-h1": "ZB-H1", "zb-h2": "ZB-H2"}
COLUMNS = ("schedule", "devices", "microbatches", "chunks", "forward", "p2p", "total_time", "bubble_ratio")
GRADIENTS = ("input_grad", "weight_grad")
PRINTED = 0.00005001  # half a unit of the fourth decimal, and what binary fractions add


def sweeps(points: Iterable[Mapping[str, Any]]) -> tuple[Comparison, Comparison]:
    """Return how far makespans and bubble ratios are from points of the eight sweeps.

    A point names schedule, devices, microbatches, chunks, forward, p2p, and backward or input_grad and weight_grad; its results are
    total_time and bubble_ratio.
    """
    rows = [_point(point) for point in each_of(points, "points must be a list of points, such as those of tests/data/sweeps.json")]
    timelines = [_run(point) for point in rows]
    times = [float(timeline.makespan) for timeline in timelines]
    bubbles = [float(timeline.bubble_ratio) for timeline in timelines]
    return (
        compared("makespans of the eight sweeps", REFERENCE, times, [row["total_time"] for row in rows], worst_bound=1e-9),
        compared(
            "bubble ratios of the eight sweeps", REFERENCE, bubbles, [row["bubble_ratio"] for row in rows],
            difference=True, worst_bound=1e-9, note="difference",
        ),
    )  # fmt: skip


def _point(point: Any) -> Mapping[str, Any]:
    """Return a point that has all columns, or refuse it."""
    if not isinstance(point, Mapping):
        raise HybridLabError(f"a point of a sweep is a mapping from columns to values, not {short_repr(point)}")
    missing = [name for name in COLUMNS if name not in point]
    missing += [] if "backward" in point else [name for name in GRADIENTS if name not in point]
    if missing:
        raise HybridLabError(f"a point of a sweep lacks {', '.join(missing)}: {short_repr(dict(point))}")
    return point


def _run(point: Mapping[str, Any]) -> Timeline:
    backward = point["backward"] if "backward" in point else point["input_grad"] + point["weight_grad"]
    share = point["weight_grad"] / backward if "weight_grad" in point else 0.5
    schedule = build(point["schedule"], point["devices"], point["microbatches"], point["chunks"])
    return simulate(schedule, Costs(forward=point["forward"], backward=backward, weight_share=share, p2p=point["p2p"]))


def orders(reference: Mapping[str, Iterable[str]]) -> Comparison:
    """Return how many operations stand elsewhere than in reference orders: a line of operations a device by "name|K|M|v"."""
    names, same = set(), []
    if not isinstance(reference, Mapping):
        raise HybridLabError(
            f'reference orders are lists of lines by sizes, such as {{"1f1b|1|1|1": ["0F0 0B0"]}}, not {short_repr(reference)}'
        )
    for key, lines in reference.items():
        name, sizes = _sizes(key)
        names.add(name)
        for order, line in zip_longest(
            build(name, *sizes).orders, each_of(lines, "an order is a line of operations a device"), fillvalue=()
        ):
            theirs = [Op.parse(word) for word in line.translate(str.maketrans("(;)", "   ")).split()] if isinstance(line, str) else []
            same += [ours == other for ours, other in zip_longest(order, theirs)]
    what = f"orders of {counted(len(names), 'schedule')}, operation by operation"
    wrong = [float(not each) for each in same]
    return compared(what, REFERENCE, wrong, [0.0] * len(same), difference=True, worst_bound=0.0, note="share that differ")


def _sizes(key: Any) -> tuple[str, list[int]]:
    name, *sizes = checked_text(key, "a key of reference orders").split("|")
    if len(sizes) != 3 or not all(size.isdecimal() and len(size) < 8 for size in sizes):
        raise HybridLabError(
            f"a key of reference orders is schedule|devices|microbatches|chunks, such as '1f1b|2|4|1', not {short_repr(key)}"
        )
    return name, [int(size) for size in sizes]


def bubble_rates(schedule: str) -> Comparison:
    """Return how far the bubble rates of "1f1b", "zb-h1" or "zb-h2" are from Table 5, on the times of Table 9.

    >>> bubble_rates("zb-h1").holds
    True
    """
    schedule = known_name(schedule, PAPER_NAMES, "schedule of Table 5", any_case=True)
    name, runs = PAPER_NAMES[schedule], zero_bubble.RUNS
    ours = [zero_bubble.bubble_rate(simulate(build(schedule, run.devices, run.microbatches), run.costs())) for run in runs]
    return compared(
        f"bubble rates of {name}", f"{ZERO_BUBBLE}, Table 5", ours, [run.bubble_rate[name] for run in runs],
        difference=True, worst_bound=PRINTED, note="difference",
    )  # fmt: skip


def throughput() -> Comparison:
    """Return how far the throughput of 1F1B, simulated from measured operations, is from the measured one of Table 4."""
    runs = zero_bubble.RUNS
    spans = [float(simulate(build("1f1b", run.devices, run.microbatches), run.costs()).makespan) for run in runs]  # ms
    ours = [run.microbatches * run.samples / run.devices / (span / 1000) for run, span in zip(runs, spans, strict=True)]
    note = "simulated: without optimiser"
    return compared("samples a second of 1F1B", f"{ZERO_BUBBLE}, Table 4", ours, [run.throughput["1F1B"] for run in runs], note=note)
