"""How far to trust the library: every comparison with values that others published or measured, in one list.

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
    GROUPS,
    IF_ASSUMED,
    ITERATION_TIMES,
    Choice,
    Recorded,
    measured_all_reduces,
    measured_iterations,
)
from hybridlab.course.comparisons.running import int8_law, threads
from hybridlab.course.comparisons.schedules import bubble_rates, orders, sweeps, throughput

__all__ = [
    "ALL_REDUCES",
    "ASSUMPTIONS",
    "CHOICES",
    "GROUPS",
    "IF_ASSUMED",
    "ITERATION_TIMES",
    "RUNS",
    "RUNS_2022",
    "Assumption",
    "Choice",
    "Comparison",
    "Recorded",
    "activation_memory",
    "bubble_rates",
    "compare_all",
    "compared",
    "errors",
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
    "sweeps",
    "threads",
    "throughput",
    "without_memory",
]


def compare_all(points: Iterable[Mapping[str, Any]], reference_orders: Mapping[str, Iterable[str]]) -> tuple[Comparison, ...]:
    """Return every comparison whose result is the same in each run, which all but :func:`threads` are.

    ``points`` as in :func:`sweeps`, ``reference_orders`` as in :func:`orders`.
    """
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
    )
