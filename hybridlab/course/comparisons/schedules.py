"""Comparisons of the library's schedules, rings and steps with three sources.

1. Reference programs: other programs that simulate the same schedules.
2. The Zero Bubble paper.
3. Runs on this machine.
"""

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np

from hybridlab import formulas
from hybridlab.checks import checked_text, counted, each_of, known_name, short_repr, whole_number
from hybridlab.collectives import ring_all_reduce
from hybridlab.costs import Costs
from hybridlab.course.comparisons.comparison import Comparison, compared
from hybridlab.course.published import zero_bubble
from hybridlab.engines import run
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Op
from hybridlab.schedules import build
from hybridlab.simulation import simulate
from hybridlab.step import hybrid_step
from hybridlab.timeline import Timeline
from hybridlab.wire import INT8

REFERENCE = "other programs"
ZERO_BUBBLE = "Qi et al. 2024"
PAPER_NAMES = {"1f1b": "1F1B", "zb-h1": "ZB-H1", "zb-h2": "ZB-H2"}
COLUMNS = ("schedule", "devices", "microbatches", "chunks", "forward", "p2p", "total_time", "bubble_ratio")
GRADIENTS = ("input_grad", "weight_grad")
HALF_A_DIGIT = 0.00005001  # the table prints four decimals: half a unit of the fourth, and a little more for the rounding of floats
NUMBERS_OF_A_RANK = 131_072  # 2^17, which is a multiple of each number in RANKS
RANKS = (2, 4, 8, 16, 32, 64)
LONGER_TRY = 4 / 3  # the factor by which the sleeps of threads grow from try to try


def sweeps(points: Iterable[Mapping[str, Any]]) -> tuple[Comparison, Comparison]:
    """Return two comparisons with the points of the eight published sweeps: of makespans and of bubble ratios.

    Parameters
    ----------
    points : iterable of mappings
        Settings and results of a reference program. The settings are schedule, devices, microbatches, chunks, forward, p2p, and either
        backward or input_grad and weight_grad. The results are total_time and bubble_ratio.

    Raises
    ------
    HybridLabError
        A point has another form, or the library does not support its settings.
    """
    rows = [_checked_point(point) for point in each_of(points, "points must be a list of points, such as tests/data/sweeps.json has")]
    timelines = [_timeline_of_point(point) for point in rows]
    times = [float(timeline.makespan) for timeline in timelines]
    bubbles = [float(timeline.bubble_ratio) for timeline in timelines]
    return (
        compared("makespans of the eight sweeps", REFERENCE, times, [row["total_time"] for row in rows], worst_bound=1e-9),
        compared(
            "bubble ratios of the eight sweeps", REFERENCE, bubbles, [row["bubble_ratio"] for row in rows],
            difference=True, worst_bound=1e-9, note="difference",
        ),
    )  # fmt: skip


def orders(reference: Mapping[str, Iterable[str]]) -> Comparison:
    """Return the comparison of schedules with reference orders. The error is the share of operations that differ.

    Parameters
    ----------
    reference : mapping
        The keys are "schedule|devices|microbatches|chunks". Each value has one line of operations for each device.

    Raises
    ------
    HybridLabError
        A key or a line has another form, or the schedule does not support a size.
    """
    if not isinstance(reference, Mapping):
        raise HybridLabError(
            f'reference must map sizes to orders, such as {{"1f1b|1|1|1": ["0F0 0B0"]}}, not {short_repr(reference)}',
            "wrong-type",
        )
    names, same = set(), []
    for key, lines in reference.items():
        name, sizes = _name_and_sizes(key)
        names.add(name)
        reference_lines = each_of(lines, "a reference order must have one line of operations for each device")
        # If one side has more lines or operations than the other, the additional operations count as different.
        for order, line in zip_longest(build(name, *sizes).orders, reference_lines, fillvalue=()):
            # An overlapped pair such as (0F3;3B1) is compared like two operations, one after the other.
            words = line.translate(str.maketrans("(;)", "   ")).split() if isinstance(line, str) else []
            same += [ours == theirs for ours, theirs in zip_longest(order, map(Op.parse, words))]
    what = f"orders of {counted(len(names), 'schedule')}, operation by operation"
    wrong = [float(not each) for each in same]  # 1 for each operation that differs
    return compared(what, REFERENCE, wrong, [0.0] * len(same), difference=True, worst_bound=0.0, note="share that differ")


def bubble_rates(schedule: str) -> Comparison:
    """Return the comparison of simulated bubble rates with Table 5 of Qi et al. The simulation uses the times in Table 9.

    Parameters
    ----------
    schedule : {"1f1b", "zb-h1", "zb-h2"}

    Raises
    ------
    HybridLabError
        The schedule is not one of these three.

    Examples
    --------
    >>> bubble_rates("zb-h1").holds
    True
    """
    schedule = known_name(schedule, PAPER_NAMES, "schedule of Table 5", any_case=True)
    name, runs = PAPER_NAMES[schedule], zero_bubble.RUNS
    ours = [zero_bubble.bubble_rate(simulate(build(schedule, run.devices, run.microbatches), run.costs())) for run in runs]
    return compared(
        f"bubble rates of {name}", f"{ZERO_BUBBLE}, Table 5", ours, [run.bubble_rate[name] for run in runs],
        difference=True, worst_bound=HALF_A_DIGIT, note="difference",
    )  # fmt: skip


def throughput() -> Comparison:
    """Return the comparison of 1F1B's simulated throughput with Table 4 of Qi et al. The simulation uses measured times.

    The comparison has no bound, because the simulated step has no optimiser.
    """
    runs = zero_bubble.RUNS
    spans = [float(simulate(build("1f1b", run.devices, run.microbatches), run.costs()).makespan) for run in runs]  # ms
    ours = [run.microbatches * run.samples / run.devices / (span / 1000) for run, span in zip(runs, spans, strict=True)]
    note = "simulated: without optimiser"
    return compared("samples a second of 1F1B", f"{ZERO_BUBBLE}, Table 4", ours, [run.throughput["1F1B"] for run in runs], note=note)


def int8_law() -> Comparison:
    """Return the comparison of ``formulas.int8_ring_nmse`` with the errors of rings that run here on normal random numbers."""
    law, measured = [], []
    for ranks in RANKS:
        # With a new generator for each number of ranks, a result does not depend on the results before it.
        values = np.random.default_rng(3).normal(size=(ranks, NUMBERS_OF_A_RANK))
        mean = values.mean(axis=0)
        measured.append(float(np.square(ring_all_reduce(values, INT8).values[0] - mean).mean() / np.square(mean).mean()))
        law.append(formulas.int8_ring_nmse(ranks, formulas.gaussian_crest(NUMBERS_OF_A_RANK // ranks)))
    what = f"NMSE of an INT8 ring of {RANKS[0]} to {RANKS[-1]} ranks, by its law"
    return compared(what, "rings run here", law, measured, worst_bound=0.15)


def threads(tries: int = 10) -> Comparison:
    """Return the comparison of a predicted step with a step that threads run during the call. The result differs from run to run.

    The step has the costs of the published report: two stages with 50 ms forward and 80 ms backward, 8 microbatches, two replicas, and
    ring steps of 20 ms. In the first try all sleeps are a quarter of these times. Other programs can delay the threads so much that the
    error is above the bound. Then the next try has sleeps that are a third longer, because the same delay is a smaller share of a longer
    sleep. The sleeps grow to at most four times the report's times. The result of a try is the median of three steps. The shortest result
    of all tries is compared.

    Parameters
    ----------
    tries : int
        The largest number of tries.

    Raises
    ------
    HybridLabError
        ``tries`` is below 1.
    """
    tries = whole_number(tries, "tries")
    schedule, costs = build("1f1b", 2, 8), Costs(forward=50, backward=80)
    predicted = hybrid_step(schedule, costs, 2, ring_step=20).makespan
    best, count = np.inf, 0
    while count < tries and best > 1.03 * predicted:  # the bound of the comparison
        longer = min(0.25 * LONGER_TRY**count, 4.0)
        # Measured times are divided by the factor of the sleeps, so tries with different sleeps can be compared.
        steps = [run(schedule, costs=costs.longer(longer), replicas=2, ring_step=20 * longer).timeline.makespan / longer for _ in range(3)]
        best, count = min(best, float(np.median(steps))), count + 1
    note = f"in this run, at try {count} of {tries}"
    return compared("a step of 2 x 2 threads", "threads run here", [predicted], [best], worst_bound=0.03, note=note)


def _checked_point(point: Any) -> Mapping[str, Any]:
    """Return the point if it has all columns, or raise an error."""
    if not isinstance(point, Mapping):
        raise HybridLabError(f"a point of a sweep must map columns to values, not {short_repr(point)}", "wrong-type")
    missing = [name for name in COLUMNS if name not in point]
    missing += [] if "backward" in point else [name for name in GRADIENTS if name not in point]
    if missing:
        raise HybridLabError(f"a point of a sweep lacks {', '.join(missing)}: {short_repr(dict(point))}", "missing-column")
    return point


def _timeline_of_point(point: Mapping[str, Any]) -> Timeline:
    """Return the simulated timeline of a point's settings."""
    backward = point["backward"] if "backward" in point else point["input_grad"] + point["weight_grad"]
    # A point with full backwards has no weight gradient. The share then has no effect, and 0.5 is the library's default.
    share = point["weight_grad"] / backward if "weight_grad" in point else 0.5
    schedule = build(point["schedule"], point["devices"], point["microbatches"], point["chunks"])
    return simulate(schedule, Costs(forward=point["forward"], backward=backward, weight_share=share, p2p=point["p2p"]))


def _name_and_sizes(key: Any) -> tuple[str, list[int]]:
    """Return the name of the schedule and the three sizes in a key such as "1f1b|2|4|1": devices, microbatches, chunks."""
    name, *sizes = checked_text(key, "a key of the reference").split("|")
    if len(sizes) != 3 or not all(size.isdecimal() and len(size) < 8 for size in sizes):
        raise HybridLabError(
            f"a key of the reference must be schedule|devices|microbatches|chunks, such as '1f1b|2|4|1', not {short_repr(key)}",
            "not-a-size",
        )
    return name, [int(size) for size in sizes]
