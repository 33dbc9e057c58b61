"""Comparisons of the library's results with values that others published or measured.

>>> for each in (parameters(), activation_memory(), iteration_times(), one_speed_for_all()):
...     print(each)
Comparison(billions of parameters: 10 points, mean error 0, worst 0: within)
Comparison(GiB of activations: 4 points, mean error 0, worst 0: within)
Comparison(iteration times, each run left out: 10 points, mean error 2.4 %, worst 5.2 %: within)
Comparison(iteration times by one TFLOP/s for all: 10 points, mean error 6.9 %, worst 13 %: no bound)
"""

from collections.abc import Iterable, Mapping
from typing import Any

from hybridlab.course.comparisons.comparison import Comparison, compared, percent
from hybridlab.course.comparisons.goals import NOT_COVERED, Reached, Target, errors_of, goals_reached
from hybridlab.course.comparisons.measured_runs import MeasuredRun, groups, runs, told
from hybridlab.course.comparisons.planning import (
    ASSUMPTIONS,
    RUNS,
    RUNS_2022,
    Assumption,
    activation_memory,
    errors,
    iteration_times,
    left_out,
    newer_software,
    one_speed,
    one_speed_for_all,
    parameters,
    without_memory,
)
from hybridlab.course.comparisons.recorded import (
    ALL_REDUCES,
    CHOICES,
    FITS,
    GROUPS,
    IF_ASSUMED,
    ITERATION_TIMES,
    MEMORY_OUTSIDE,
    OUTSIDE,
    Choice,
    Fits,
    Recorded,
    measured_all_reduces,
    measured_iterations,
)
from hybridlab.course.comparisons.schedules import bubble_rates, int8_law, orders, sweeps, threads, throughput
from hybridlab.course.comparisons.stored_steps import stored_steps
from hybridlab.course.comparisons.trials import TRIALS, conditions, predicted_steps, recorded_trials, was_quiet

__all__ = [
    "ALL_REDUCES",
    "ASSUMPTIONS",
    "CHOICES",
    "FITS",
    "GROUPS",
    "IF_ASSUMED",
    "ITERATION_TIMES",
    "MEMORY_OUTSIDE",
    "NOT_COVERED",
    "OUTSIDE",
    "RUNS",
    "RUNS_2022",
    "TRIALS",
    "Assumption",
    "Choice",
    "Comparison",
    "Fits",
    "MeasuredRun",
    "Reached",
    "Recorded",
    "Target",
    "activation_memory",
    "bubble_rates",
    "compare_all",
    "compared",
    "conditions",
    "errors",
    "errors_of",
    "goals_reached",
    "groups",
    "int8_law",
    "iteration_times",
    "left_out",
    "measured_all_reduces",
    "measured_iterations",
    "newer_software",
    "one_speed",
    "one_speed_for_all",
    "orders",
    "parameters",
    "percent",
    "predicted_steps",
    "recorded_trials",
    "runs",
    "stored_steps",
    "sweeps",
    "threads",
    "throughput",
    "told",
    "was_quiet",
    "without_memory",
]


def compare_all(points: Iterable[Mapping[str, Any]], reference_orders: Mapping[str, Iterable[str]]) -> tuple[Comparison, ...]:
    """Return every comparison except :func:`threads`, whose result differs from run to run.

    Parameters
    ----------
    points : iterable of mappings
        As in :func:`sweeps`.
    reference_orders : mapping
        As in :func:`orders`.

    Raises
    ------
    HybridLabError
        In the same cases as :func:`sweeps` and :func:`orders`.
    """
    # The page on trust shows the comparisons in this order: schedules, then models and plans, then measurements.
    return (
        orders(reference_orders),
        *sweeps(points),
        *(bubble_rates(name) for name in ("1f1b", "zb-h1", "zb-h2")),
        throughput(),
        parameters(),
        activation_memory(),
        iteration_times(),
        one_speed_for_all(),
        without_memory(),
        newer_software(),
        measured_iterations(),
        *measured_all_reduces(),
        int8_law(),
        *predicted_steps(),
    )
