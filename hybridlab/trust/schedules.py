"""Comparisons of schedules and of the clock with reference runs and with the Zero Bubble paper."""

from collections.abc import Iterable, Mapping
from typing import Any

from hybridlab.clock import simulate
from hybridlab.costs import Costs
from hybridlab.ops import Op
from hybridlab.published import zero_bubble
from hybridlab.schedules import build
from hybridlab.timeline import Timeline
from hybridlab.trust.comparison import Comparison, compared

REFERENCE = "other programs"
ZERO_BUBBLE = "Qi et al. 2024"
PAPER_NAMES = {"1f1b": "1F1B", "zb-h1": "ZB-H1", "zb-h2": "ZB-H2"}
PRINTED = 0.00005001  # half a unit of the fourth decimal, and what binary fractions add


def sweeps(points: Iterable[Mapping[str, Any]]) -> tuple[Comparison, Comparison]:
    """Return how far makespans and bubble ratios are from points of the eight sweeps.

    A point names schedule, devices, microbatches, chunks, forward, p2p, and backward or input_grad and weight_grad; its results are
    total_time and bubble_ratio.
    """
    rows = list(points)
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


def _run(point: Mapping[str, Any]) -> Timeline:
    backward = point["backward"] if "backward" in point else point["input_grad"] + point["weight_grad"]
    share = point["weight_grad"] / backward if "weight_grad" in point else 0.5
    schedule = build(point["schedule"], point["devices"], point["microbatches"], point["chunks"])
    return simulate(schedule, Costs.per_device(point["forward"], backward, share, point["p2p"]))


def orders(reference: Mapping[str, Iterable[str]]) -> Comparison:
    """Return how many operations stand elsewhere than in reference orders: a line of operations a device by "name|K|M|v"."""
    names, same = set(), []
    for key, lines in reference.items():
        name, *sizes = key.split("|")
        names.add(name)
        for order, line in zip(build(name, *map(int, sizes)).orders, lines, strict=True):
            theirs = [Op.parse(word) for word in line.translate(str.maketrans("(;)", "   ")).split()]
            same += [ours == other for ours, other in zip(order, theirs, strict=True)]
    what = f"orders of {len(names)} schedules, operation by operation"
    wrong = [float(not each) for each in same]
    return compared(what, REFERENCE, wrong, [0.0] * len(same), difference=True, worst_bound=0.0, note="share that differ")


def bubble_rates(schedule: str) -> Comparison:
    """Return how far the bubble rates of "1f1b", "zb-h1" or "zb-h2" are from Table 5, on the times of Table 9.

    >>> bubble_rates("zb-h1").holds
    True
    """
    runs = zero_bubble.RUNS
    ours = [zero_bubble.bubble_rate(simulate(build(schedule, run.devices, run.microbatches), run.costs())) for run in runs]
    name = PAPER_NAMES[schedule]
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
