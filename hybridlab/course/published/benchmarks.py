"""The tables in sections 6 and 7 of the published report: the printed numbers, and the correct steps beside them.

The module ``report`` has the setting and the earlier sections. The times of 50 and 80 ms can be read in two ways, and the report uses
both ways. In reading "A", 50 and 80 ms are the times of one stage, for any number of stages. In reading "B", they are the times of the
whole model, so one of K stages takes 50/K and 80/K. All times are in ms.
"""

from typing import Generic, NamedTuple, TypeVar

from hybridlab.checks import known_name, whole_number
from hybridlab.costs import Costs
from hybridlab.course.published.report import BACKWARD, FORWARD, MICROBATCHES, REPLICAS, RING_STEP, STAGES, Figure
from hybridlab.schedules import build
from hybridlab.step import HybridStep, hybrid_step

READINGS = ("A", "B")

TEST_2 = Figure("section 6.1, test 2", "one GPU, 8 microbatches", (1040,), "ms")
TEST_3 = Figure("section 6.1, test 3", "speedup of 4 GPUs over one", (0.86,), "times")
TEST_4_SYNC = Figure("section 6.1, test 4", "messages between the stages, estimated", (20,), "ms")
TEST_4 = Figure("section 6.1, test 4", "communication in a step", (5,), "%")


class Benchmark1(NamedTuple):
    """A row of benchmark 1: 2 stages on 4 GPUs.

    Parameters
    ----------
    microbatches : int
    compute, communication, total : float
        Times, ms.
    speedup : float
        The time of one GPU divided by the time of the step, as printed.
    """

    microbatches: int
    compute: float
    communication: float
    total: float
    speedup: float


class Benchmark2(NamedTuple):
    """A row of benchmark 2: 8 microbatches with several numbers of stages. The report says "4 GPUs" for every row.

    Parameters
    ----------
    stages : int
    warm_up, steady, cool_down, total : float
        Times, ms.
    """

    stages: int
    warm_up: float
    steady: float
    cool_down: float
    total: float


class Benchmark3(NamedTuple):
    """A row of benchmark 3: the all-reduce with several numbers of replicas.

    Parameters
    ----------
    replicas : int
    ring_steps : int
    ring_step : float
        Time of one step of the ring, ms.
    all_reduce : float
        Time of the all-reduce, ms.
    share : float
        Share of the all-reduce in the step, %.
    """

    replicas: int
    ring_steps: int
    ring_step: float
    all_reduce: float
    share: float


class Metric(NamedTuple):
    """A row of section 7.1.2: a quantity of the report's run.

    Parameters
    ----------
    name : str
    expected, observed : float
        The value that the report expected, and the value that it reports as observed.
    unit : str
    """

    name: str
    expected: float
    observed: float
    unit: str


# These are the printed numbers. Some contradict each other: 1040 + 40 + 130 is 1210, but 2080 + 40 + 130 is not 2160.
BENCHMARK_1 = (
    Benchmark1(2, 260, 20, 300, 3.47),
    Benchmark1(4, 520, 40, 600, 1.73),
    Benchmark1(8, 1040, 40, 1210, 0.86),
    Benchmark1(16, 2080, 40, 2160, 0.48),
)
# The report computes the steady state as 1040 / K, and warm-up and cool-down as (K - 1) times 50 and 80.
BENCHMARK_2 = (
    Benchmark2(1, 0, 1040, 0, 1040),
    Benchmark2(2, 50, 520, 80, 650),
    Benchmark2(4, 150, 260, 240, 650),
    Benchmark2(8, 350, 130, 560, 1040),
)
BENCHMARK_3 = (  # with one replica there is no ring, so the report prints a dash for the time of a ring step
    Benchmark3(1, 0, 0, 0, 0),
    Benchmark3(2, 2, 10, 20, 1.7),
    Benchmark3(4, 6, 10, 60, 4.9),
    Benchmark3(8, 14, 10, 140, 11.5),
)
METRICS = (
    Metric("time of one GPU", 1040, 1045, "ms"),
    Metric("time of 4 GPUs", 1200, 1234, "ms"),
    Metric("speedup of 4 GPUs", 0.85, 0.82, "times"),
    Metric("communication", 5, 4.2, "%"),
    Metric("peak of activations", 20, 22, "units"),
)

Row = TypeVar("Row", Benchmark1, Benchmark2, Benchmark3)


class Beside(NamedTuple, Generic[Row]):
    """A printed row of a benchmark, and the correct step with the settings of this row.

    Parameters
    ----------
    printed : Benchmark1, Benchmark2 or Benchmark3
    right : HybridStep
        The simulated step with the settings of the row.
    """

    printed: Row
    right: HybridStep


def reading_step(
    reading: str, stages: int = STAGES, microbatches: int = MICROBATCHES, replicas: int = REPLICAS, ring_step: float = RING_STEP
) -> HybridStep:
    """Return the report's step: 1F1B, then the ring all-reduces.

    Parameters
    ----------
    reading : {"A", "B"}
        With "A", 50 and 80 ms are the times of one stage. With "B", they are the times of the whole model.
    stages : int
    microbatches : int
        Microbatches of each replica.
    replicas : int
    ring_step : float
        Time of one step of the ring, ms.

    Raises
    ------
    HybridLabError
        The reading is unknown, or ``hybrid_step`` refuses a size or a time.

    Examples
    --------
    >>> [reading_step(reading).makespan for reading in READINGS]
    [1210.0, 625.0]
    """
    # Reading B divides the times of the whole model among the stages.
    parts = whole_number(stages, "stages") if known_name(reading, READINGS, "reading") == "B" else 1
    costs = Costs(forward=FORWARD / parts, backward=BACKWARD / parts)
    return hybrid_step(build("1f1b", stages, microbatches), costs, replicas, ring_step=ring_step)


def benchmark_1(reading: str) -> tuple[Beside[Benchmark1], ...]:
    """Return the rows of benchmark 1, each with the correct step. Each of the two replicas runs the row's number of microbatches.

    Parameters
    ----------
    reading : {"A", "B"}
        As in :func:`reading_step`.

    Examples
    --------
    >>> [f"{row.right.speedup:.2f}" for row in benchmark_1("A")]
    ['2.42', '3.01', '3.44', '3.70']
    """
    return tuple(Beside(row, reading_step(reading, microbatches=row.microbatches)) for row in BENCHMARK_1)


def benchmark_2(reading: str) -> tuple[Beside[Benchmark2], ...]:
    """Return the rows of benchmark 2, each with the correct step of one replica: K stages on K GPUs, without an all-reduce.

    Parameters
    ----------
    reading : {"A", "B"}
        As in :func:`reading_step`.

    Examples
    --------
    >>> [row.right.makespan for row in benchmark_2("B")]
    [1040.0, 585.0, 357.5, 243.75]
    """
    return tuple(Beside(row, reading_step(reading, row.stages, replicas=1)) for row in BENCHMARK_2)


def benchmark_3(reading: str) -> tuple[Beside[Benchmark3], ...]:
    """Return the rows of benchmark 3, each with the correct step.

    Parameters
    ----------
    reading : {"A", "B"}
        As in :func:`reading_step`.

    Examples
    --------
    >>> [round(100 * row.right.communication_share, 2) for row in benchmark_3("A")]
    [0.0, 1.68, 4.88, 10.69]
    """
    return tuple(Beside(row, reading_step(reading, replicas=row.replicas, ring_step=row.ring_step)) for row in BENCHMARK_3)
