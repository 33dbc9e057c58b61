"""The published simulator of hybrid training, for any size. It computes the numbers that the program prints in its performance report.

There are K stages, D replicas and M microbatches. Each stage has n weights. The program does the following:

1. All weights are set to 1.
2. The backwards run in the order of ``timelines``. Each backward adds n random numbers to the gradient of its rank.
3. One ring all-reduce runs for each stage, as in ``ring``.
4. Every rank subtracts 0.01 times the result of its ring from its weights.
5. To measure the accuracy, the weights of stage 0 in replica 0 classify random points. The labels of the points come from a random vector
   that training never uses, so nothing can be learned.
"""

from dataclasses import dataclass, field

import numpy as np

from hybridlab.checks import MOST_CELLS, known_name, numbers, short_repr, whole_number
from hybridlab.course.published.ring import MODES, check_chunks, published_ring
from hybridlab.course.published.timelines import Event, checked_table_sizes, event_log, microbatches_by_step, step_grid
from hybridlab.errors import HybridLabError
from hybridlab.mesh import Mesh
from hybridlab.wire import Single

# The program imports these modules and no others. Claims about threads and queues are compared with them.
MODULES = ("numpy", "time")
LEARNING_RATE = 0.01  # the learning rate of the program
POINTS, POINTS_SEED = 300, 42  # number of points in the accuracy check, and the seed for them
# The program sets no seed, so its published run cannot be repeated. With the seed below, four results round to the published numbers: the
# accuracy of 49.00 %, and the weight differences of 3.0e-4, 2.6e-4 and 2.5e-4. Of the seeds 0 to 9999, 3772 give this accuracy, and only
# the seeds 117 and 9400 give all four numbers.
PRINTED_SEED = 9400
LARGEST_WEIGHT = 1e6


@dataclass(frozen=True)
class Simulation:
    """The numbers that the published program prints for one run. ``str()`` returns its performance report without the run time.

    Parameters
    ----------
    stages, replicas, microbatches, gradient_size : int
    comm_mode : str
    comm_bytes : int
        Bytes of all messages as the program counts them. It counts the encoded numbers (codes), but not the scales.
    scale_bytes : int
        Bytes of all scales, which the program does not count.
    accuracy : float
        The percentage of points that get the correct label after the step.
    accuracy_before : float
        The percentage of points that get the correct label with the initial weights.
    weight_difference : tuple of float
        One value for each stage: the largest distance between the weights of replica 0 and the weights of another replica.
    timeline : tuple of tuple of str
        The cells of :func:`step_grid`.
    events : tuple of Event
        The rows of :func:`event_log`.
    """

    stages: int
    replicas: int
    microbatches: int
    gradient_size: int
    comm_mode: str
    comm_bytes: int
    scale_bytes: int
    accuracy: float
    accuracy_before: float
    weight_difference: tuple[float, ...]
    timeline: tuple[tuple[str, ...], ...] = field(repr=False)
    events: tuple[Event, ...] = field(repr=False)

    def __str__(self) -> str:
        head = f"{self.stages} stages x {self.replicas} replicas = {self.stages * self.replicas} ranks, messages in {self.comm_mode}"
        figures = (f"accuracy              {self.accuracy:.2f} %", f"communication         {self.comm_bytes} bytes")
        replicas = (f"replicas of stage {stage:<3} differ by {distance}" for stage, distance in enumerate(self.weight_difference))
        return "\n".join((head, *figures, *replicas))


def simulator(
    stages: int = 3,
    replicas: int = 4,
    microbatches: int = 6,
    gradient_size: int = 120,
    comm_mode: str = "INT8",
    seed: int | None = None,
    initial_weight: float = 1.0,
) -> Simulation:
    """Return the numbers that the published program prints for these sizes. The default sizes are the published ones.

    Parameters
    ----------
    stages, replicas, microbatches : int
    gradient_size : int
        Number of weights of a stage, a multiple of ``replicas``.
    comm_mode : {"INT8", "FP16", "FP32"}
        Format of the messages. The program has no "FP32".
    seed : int, optional
        Seed of ``numpy.random.RandomState``. The published program sets no seed. If it set this seed, it would print the same numbers
        as this function. None takes seed 9400, which gives the published accuracy and, to two digits, the published weight differences.
        More than one seed in three gives that accuracy. Only 2 of the seeds below 10,000 also give the differences. With another seed,
        a few of the 300 points get another label after the step.
    initial_weight : float
        The value of all weights at the start. The program uses 1. The change of the weights does not depend on this value, because the
        gradients are random numbers.

    Raises
    ------
    HybridLabError
        A size, a mode or a seed is not allowed, or the run takes too long or does not fit in memory.

    Examples
    --------
    >>> run = simulator()
    >>> run.comm_bytes, run.accuracy, run.accuracy_before, len(run.timeline), len(run.events)
    (2160, 49.0, 49.0, 8, 144)
    """
    stages, replicas, microbatches = checked_table_sizes(stages, replicas, microbatches)
    size = whole_number(gradient_size, "gradient_size")
    mode = known_name(comm_mode, MODES, "comm_mode")
    seed = PRINTED_SEED if seed is None else whole_number(seed, "seed", at_least=0, at_most=2**32 - 1)
    first = numbers(initial_weight, "initial_weight")
    if first.ndim or not abs(first) <= LARGEST_WEIGHT:
        code = "wrong-shape" if first.ndim else "out-of-range"
        raise HybridLabError(f"initial_weight must be one number from -1e6 to 1e6, not {short_repr(initial_weight)}", code)
    check_chunks(size, replicas)
    if max(stages * replicas * microbatches, POINTS) * size > MOST_CELLS:
        raise HybridLabError(f"a run that draws more than {MOST_CELLS:,} random numbers takes too long: try smaller sizes", "too-large")
    gradients = _random_gradients(Mesh(stages, replicas), microbatches, size, seed)
    rings = [published_ring(gradients[:, stage], mode) for stage in range(stages)]
    # The program computes in float32. Only float32 gives the published weight differences.
    weights = [np.float32(first) - np.float32(LEARNING_RATE) * ring.values for ring in rings]
    # The program classifies with the weights of stage 0 in replica 0 alone.
    before, after = _accuracies(np.stack([np.full_like(weights[0][0], first), weights[0][0]]))
    return Simulation(
        stages, replicas, microbatches, size, mode,
        comm_bytes=sum(int(ring.payload_bytes.sum()) for ring in rings),
        scale_bytes=sum(int(ring.scale_bytes.sum()) for ring in rings),
        accuracy=after,
        accuracy_before=before,
        weight_difference=tuple(max(float(np.linalg.norm(row[0] - other)) for other in row) for row in weights),
        timeline=step_grid(stages, replicas, microbatches).cells,
        events=event_log(stages, replicas, microbatches).rows,
    )  # fmt: skip


def _random_gradients(mesh: Mesh, microbatches: int, size: int, seed: int) -> Single:
    """Return the sum of random gradients for each rank, shape (replicas, stages, size).

    The random numbers are drawn step by step and, within a step, rank by rank.
    """
    # The program uses NumPy's old generator. A new Generator with the same seed gives other numbers.
    draw = np.random.RandomState(seed)
    _, backward = microbatches_by_step(mesh.stages, microbatches)
    total: Single = np.zeros((mesh.replicas, mesh.stages, size), dtype=np.float32)
    # ``busy`` marks the stages that run a backward in a step. The random numbers must be drawn in the program's order.
    for busy in backward >= 0:
        total[:, busy] += draw.standard_normal((mesh.replicas, int(busy.sum()), size)).astype(np.float32)
    return total


def _accuracies(weights: Single) -> tuple[float, ...]:
    """Return the percentage of points that get the correct label, for each row of weights."""
    draw = np.random.RandomState(POINTS_SEED)
    points = draw.standard_normal((POINTS, weights.shape[1])).astype(np.float32)
    labelling = draw.standard_normal((weights.shape[1],)).astype(np.float32)
    right = (points @ weights.T > 0) == (points @ labelling > 0)[:, None]
    return tuple(float(share) for share in right.mean(axis=0) * 100)
