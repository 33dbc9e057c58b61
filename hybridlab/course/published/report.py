"""The numbers that the published report on hybrid parallelism prints, and the rules by which the report computes them.

Some of the rules are wrong; ``simulate`` and ``formulas`` give the right values. The numbers come from sections 4.2, 5.2 and 5.3 and from
tests 1 and 5. They are for two stages, two replicas and eight microbatches. Times are in ms.
"""

from dataclasses import dataclass
from typing import NamedTuple

from hybridlab.checks import one_time, whole_number

# The setting of all numbers below, from sections 4.1, 4.2 (choice 3) and 5.3 of the report
STAGES = 2
REPLICAS = 2
MICROBATCHES = 8
GLOBAL_BATCH = 256  # samples
MICROBATCH_SIZE = 32  # samples
FORWARD = 50.0  # ms for each microbatch; the report does not say whether 50 ms is the time of one stage or of the whole model
BACKWARD = 80.0
RING_STEP = 20.0  # ms for each step of the ring all-reduce
ACTIVATION = 10.0  # units of memory for each microbatch, in test 5


@dataclass(frozen=True)
class Figure:
    """One printed number or range of the report.

    Parameters
    ----------
    where : str
        Section of the report.
    text : str
        The meaning of the number, in our words.
    printed : tuple of float
        The printed number, or the two ends of a range.
    unit : str

    Examples
    --------
    >>> print(GPIPE_BUBBLE)
    section 4.2, choice 1: share of the time that devices idle under GPipe: 30 to 40 %
    """

    where: str
    text: str
    printed: tuple[float, ...]
    unit: str = ""

    def __str__(self) -> str:
        numbers = " to ".join(f"{number:g}" for number in self.printed)
        return f"{self.where}: {self.text}: {numbers} {self.unit}".rstrip()


GPIPE_BUBBLE = Figure("section 4.2, choice 1", "share of the time that devices idle under GPipe", (30, 40), "%")
ONE_F_ONE_B_BUBBLE = Figure("section 4.2, choice 1", "share of the time that devices idle under 1F1B", (2, 5), "%")
MICROBATCH_COUNT = Figure("section 4.2, choice 3", "microbatches in a global batch of 256, 32 samples each", (8,))
COMPUTE = Figure("section 5.3", "computing 8 microbatches", (1040,), "ms")
ALL_REDUCE = Figure("section 5.3", "ring all-reduce between 2 replicas", (40,), "ms")
WARM_UP = Figure("section 5.3", "idle while the pipeline fills", (50,), "ms")
COOL_DOWN = Figure("section 5.3", "idle while the pipeline drains", (80,), "ms")
OVERHEAD = Figure("section 5.3", "filling and draining the pipeline", (130,), "ms")
TOTAL = Figure("section 5.3", "one step of the whole system", (1210,), "ms")
MEMORY_WITHOUT = Figure("section 6.1, test 5", "activations held without a pipeline", (80,), "units")
MEMORY_PEAK = Figure("section 6.1, test 5", "most activations held under 1F1B", (20,), "units")
MEMORY_SAVING = Figure("section 6.1, test 5", "activation memory that 1F1B saves", (75,), "%")
FIGURES = (
    GPIPE_BUBBLE,
    ONE_F_ONE_B_BUBBLE,
    MICROBATCH_COUNT,
    COMPUTE,
    ALL_REDUCE,
    WARM_UP,
    COOL_DOWN,
    OVERHEAD,
    TOTAL,
    MEMORY_WITHOUT,
    MEMORY_PEAK,
    MEMORY_SAVING,
)


class Phases(NamedTuple):
    """The three phases of 1F1B on one rank, as the report divides them.

    Parameters
    ----------
    warm_up, steady, cool_down : str
        The operations of the phase as text, such as "0F1 0B0".
    """

    warm_up: str
    steady: str
    cool_down: str

    @property
    def order(self) -> str:
        """The whole order of the rank.

        >>> PHASES[0].order.split()[:5] == TEST_1_ORDER.split()
        True
        """
        return " ".join(self)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The number of operations in each phase.

        >>> PHASES[0].lengths
        (1, 12, 3)
        """
        return tuple(len(phase.split()) for phase in self)


# The orders of ranks 0 and 1 in section 5.2. For rank 1 the report prints a warm-up F(0), a cool-down B(7), and pairs F(i), B(i) without
# the values of i. Here the steady state of rank 1 has all operations between its warm-up and its cool-down.
PHASES = (
    Phases("0F0", "0F1 0B0 0F2 0B1 0F3 0B2 0F4 0B3 0F5 0B4 0F6 0B5", "0F7 0B6 0B7"),
    Phases("1F0", "1B0 1F1 1B1 1F2 1B2 1F3 1B3 1F4 1B4 1F5 1B5 1F6 1B6 1F7", "1B7"),
)
TEST_1_ORDER = "0F0 0F1 0B0 0F2 0B1"  # section 6.1, test 1: the beginning of the order; the report prints dots for the rest


class Estimate(NamedTuple):
    """The parts of one step in section 5.3, in ms.

    Parameters
    ----------
    compute, all_reduce, warm_up, cool_down : float
    """

    compute: float
    all_reduce: float
    warm_up: float
    cool_down: float

    @property
    def overhead(self) -> float:
        """Warm-up and cool-down together."""
        return self.warm_up + self.cool_down

    @property
    def total(self) -> float:
        """The sum of all parts, because in the report no parts overlap."""
        return self.compute + self.all_reduce + self.overhead


def estimate(
    stages: int = STAGES,
    microbatches: int = MICROBATCHES,
    replicas: int = REPLICAS,
    forward: float = FORWARD,
    backward: float = BACKWARD,
    ring_step: float = RING_STEP,
) -> Estimate:
    """Return the parts of one step by the report's rules.

    There are K stages, D replicas and M microbatches. The computation takes M(F + B), the all-reduce takes 2(D-1) ring steps, the
    warm-up takes (K-1)F, and the cool-down takes (K-1)B.

    Parameters
    ----------
    stages, microbatches, replicas : int
    forward, backward : float
        Times of one microbatch, in ms or in any unit that is the same for all times.
    ring_step : float
        Time of one step of the ring, ms.

    Raises
    ------
    HybridLabError
        A size is below 1, or a time is not a single number of zero or more.

    References
    ----------
    The report's section 5.3.

    Examples
    --------
    >>> estimate(), estimate().total
    (Estimate(compute=1040.0, all_reduce=40.0, warm_up=50.0, cool_down=80.0), 1210.0)
    """
    stages, replicas = whole_number(stages, "stages"), whole_number(replicas, "replicas")
    microbatches = whole_number(microbatches, "microbatches")
    forward, backward, ring_step = one_time(forward, "forward"), one_time(backward, "backward"), one_time(ring_step, "ring_step")
    return Estimate(
        compute=microbatches * (forward + backward),
        all_reduce=2 * (replicas - 1) * ring_step,
        warm_up=(stages - 1) * forward,
        cool_down=(stages - 1) * backward,
    )
