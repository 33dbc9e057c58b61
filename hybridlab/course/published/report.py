"""What the published report on hybrid parallelism prints, and the arithmetic by which it gets there, right or wrong.

Sections 4.2, 5.2 and 5.3 and tests 1 and 5: two stages, two replicas, eight microbatches. Times in ms. What is right is
computed elsewhere, by ``simulate`` and ``formulas``.
"""

from dataclasses import dataclass
from typing import NamedTuple

from hybridlab.checks import one_time, whole_number
from hybridlab.errors import HybridLabError

# Section 4.1, 4.2 (choice 3) and 5.3: the setting that every figure below is for.
STAGES = 2
REPLICAS = 2
MICROBATCHES = 8
GLOBAL_BATCH = 256  # samples
MICROBATCH_SIZE = 32  # samples
FORWARD = 50.0  # ms a microbatch; of one stage or of the whole model, the report does not say
BACKWARD = 80.0
RING_STEP = 20.0  # ms a step of the ring all-reduce
ACTIVATION = 10.0  # units of memory a microbatch, test 5


@dataclass(frozen=True)
class Figure:
    """One printed figure: ``where`` it stands, what it says (``text``, our words), the ``printed`` numbers and their ``unit``.

    Two numbers are a range, from and to.

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
    """The three phases of 1F1B on one rank, each the text of its operations, cut where the report cuts them."""

    warm_up: str
    steady: str
    cool_down: str

    @property
    def order(self) -> str:
        """The rank's whole order.

        >>> PHASES[0].order.split()[:5] == TEST_1_ORDER.split()
        True
        """
        return " ".join(self)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Operations in each phase.

        >>> PHASES[0].lengths
        (1, 12, 3)
        """
        return tuple(len(phase.split()) for phase in self)


# Section 5.2, ranks 0 and 1. For rank 1 it prints a warm-up F(0), a cool-down B(7) and, for the rest, pairs F(i), B(i)
# without a range of i; here steady is what is left between the two.
PHASES = (
    Phases("0F0", "0F1 0B0 0F2 0B1 0F3 0B2 0F4 0B3 0F5 0B4 0F6 0B5", "0F7 0B6 0B7"),
    Phases("1F0", "1B0 1F1 1B1 1F2 1B2 1F3 1B3 1F4 1B4 1F5 1B5 1F6 1B6 1F7", "1B7"),
)
TEST_1_ORDER = "0F0 0F1 0B0 0F2 0B1"  # section 6.1, test 1: how the order begins; then dots


class Estimate(NamedTuple):
    """Section 5.3's parts of one step, in ms."""

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
        """The sum of all parts: nothing overlaps."""
        return self.compute + self.all_reduce + self.overhead


def microbatch_count(global_batch: int = GLOBAL_BATCH, microbatch_size: int = MICROBATCH_SIZE) -> int:
    """Return how many microbatches the report's rule gives: global batch / microbatch size, replicas left out.

    Raises :class:`HybridLabError` where that is no whole number. Section 4.2, choice 3.

    >>> microbatch_count(256, 32)
    8
    """
    global_batch = whole_number(global_batch, "global_batch")
    microbatch_size = whole_number(microbatch_size, "microbatch_size")
    if global_batch % microbatch_size:
        near = max(global_batch // microbatch_size, 1) * microbatch_size
        message = f"a global batch of {global_batch} is not a multiple of {microbatch_size}"
        raise HybridLabError(f"{message}: try {near} or {near + microbatch_size}")
    return global_batch // microbatch_size


def estimate(
    stages: int = STAGES,
    microbatches: int = MICROBATCHES,
    replicas: int = REPLICAS,
    forward: float = FORWARD,
    backward: float = BACKWARD,
    ring_step: float = RING_STEP,
) -> Estimate:
    """Return the parts of one step by the report's rules; times in one unit (the report's: ms).

    Computing M(F + B), all-reduce 2(D-1) ring steps, warm-up (K-1)F, cool-down (K-1)B, for K stages and D replicas.
    Raises :class:`HybridLabError` for sizes below 1 and for times that are not single numbers of zero or more.
    Section 5.3.

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


def memory_saving(peak: float = MEMORY_PEAK.printed[0], microbatches: int = MICROBATCHES, activation: float = ACTIVATION) -> float:
    """Return the share of activation memory saved by the report's rule: (M a - peak) / (M a).

    M a, every microbatch's activations at once, is what the report calls a run without a pipeline; ``peak`` it gives
    as a number. Raises :class:`HybridLabError` where M a is zero. Section 6.1, test 5.

    >>> memory_saving(peak=20, microbatches=8, activation=10)
    0.75
    """
    without = whole_number(microbatches, "microbatches") * one_time(activation, "activation")
    if not without:
        raise HybridLabError("activation must be above zero: without activations there is nothing to save")
    return (without - one_time(peak, "peak")) / without
