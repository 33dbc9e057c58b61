"""Training on K stages x D replicas. Operations run one by one, and ring all-reduces average the gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hybridlab.arrays import Floats, Ints, readonly
from hybridlab.checks import counted, numbers, short_repr, true_or_false, whole_number
from hybridlab.collectives import ring_all_reduce
from hybridlab.collectives.result import checked_wire
from hybridlab.errors import HybridLabError
from hybridlab.progress import Progress, reporting
from hybridlab.schedule import Op, Schedule
from hybridlab.step.replicas import Replicated, holders
from hybridlab.training.alone import DEFAULT, Log, Trained, checked_rate, data_for, generators
from hybridlab.training.data import DataSet, batches
from hybridlab.training.executor import Executor, RunPipeline, gradients_by, order_lines
from hybridlab.training.network import Network
from hybridlab.wire import FP32, WireFormat

_Step = tuple[Floats, tuple[Floats, ...], Floats | None]  # losses, gradients of each stage, peaks of each device
AllReduce = Callable[[Floats], Any]  # takes and returns an array of shape (holders, parameters of a stage)


def train(
    schedule: Schedule,
    replicas: int = 1,
    *,
    wire: WireFormat = FP32,
    error_feedback: bool = False,
    all_reduce: AllReduce | None = None,
    run_pipeline: RunPipeline | None = None,
    by_label: bool = False,
    network: Network = DEFAULT,
    data: DataSet | None = None,
    batch: int = 128,
    steps: int = 200,
    learning_rate: float = 0.3,
    seed: int = 0,
    every: int | None = None,
    progress: Progress = None,
) -> Trained:
    """Return the network after ``steps`` steps of SGD on ``replicas`` pipelines that each run ``schedule``.

    A step does four things. (1) It cuts a global batch into equal microbatches for all replicas. (2) It runs the operations of the schedule
    one by one in the order of their slots. (3) For each stage, one :func:`~hybridlab.collectives.ring_all_reduce` averages the gradients
    over the ranks that hold the stage. (4) Each rank updates its own weights. With two copies of the weights, both copies of every replica
    take part in the ring. Each copy has the gradients of its own microbatches.

    All numbers are float64. Training on one device gives almost the same result; any larger difference comes from the wire format.

    Parameters
    ----------
    schedule : Schedule
        The schedule of one pipeline.
    replicas : int
        The number of pipelines.
    wire : WireFormat
        The format of the messages in the ring. The default, FP32, rounds float64 gradients.
    error_feedback : bool
        Whether each rank stores its rounding errors and adds them to its gradients in the next step.
    all_reduce : callable, optional
        A function that replaces the ring. It takes the gradients of one stage, shape (holders, parameters). The holders are the ranks that
        hold the stage. The function returns the average for each holder, in the same shape.
    run_pipeline : callable, optional
        A function that replaces the executor: ``run_pipeline(orders, forward, backward, inputs)`` runs the operations of one replica.
        ``orders`` has a line of text with the operations of each device. ``forward`` and ``backward`` are the two functions of
        :func:`stage_functions`. ``inputs`` is a list with the samples of each microbatch. The function returns the sum of the losses, and
        a list with the sum of the weight gradients of each stage. The schedule must have stage d on device d and only full backwards.
    by_label : bool
        Whether every global batch is sorted by label before it is cut. The replicas then get different digits.
    network, data, batch, steps, learning_rate, seed, every, progress
        As for :func:`train_alone`. With the same arguments, both functions start from the same weights and take the same batches.

    Returns
    -------
    Trained
        The weights of every replica, the losses and the accuracies.

    Raises
    ------
    HybridLabError
        The batch cannot be cut into equal microbatches, there are more stages than layers, the wire format cannot carry a gradient, or
        training diverges until a number is no longer finite (``diverged``). A training whose loss grows but stays finite returns.

    Examples
    --------
    >>> from hybridlab.schedules import build
    >>> trained = train(build("1f1b", devices=2, microbatches=4), replicas=2, steps=20)
    >>> trained.losses[[0, -1]].round(2), trained.spread.max(), trained.peak_activations
    (array([2.32, 0.9 ]), np.float64(0.0), array([2., 1.]))
    """
    must_be_one_pipeline(schedule)
    by_label = true_or_false(by_label, "by_label")
    data = data_for(network, data)
    shape = shape_of_labels(whole_number(batch, "batch"), whole_number(replicas, "replicas"), schedule.microbatches)
    for_weights, for_batches, for_wire = generators(seed)
    # shape (replicas x copies, parameters); all rows start with the same weights
    start = np.tile(network.initial(for_weights), (holders(schedule, shape[0]).shape[1], 1))
    weights = [stage.copy() for stage in network.split(start, schedule.stages)]  # split returns views of one array
    rings = _StageRings(wire, error_feedback, all_reduce, weights, for_wire)
    run_step = _step_of(schedule, network, run_pipeline)
    log, rate, spread = Log(network, data, whole_number(steps, "steps"), every), checked_rate(learning_rate), []
    with reporting(progress, log.steps, "steps") as report:
        for done, chosen in enumerate(batches(len(data.labels), batch, log.steps, for_batches), start=1):
            if by_label:
                chosen = chosen[np.argsort(data.labels[chosen], kind="stable")]
            inputs, labels = data.inputs[chosen].reshape(*shape, -1), data.labels[chosen].reshape(shape)
            with np.errstate(all="ignore"):  # the check below raises an error for numbers that are not finite
                losses, gradients, peaks = run_step(weights, inputs, labels)
            log.must_be_finite(losses)  # before the ring, because its error would name the wire format as the cause
            for stage, rows in enumerate(gradients):
                weights[stage] = weights[stage] - rate * rings.average(stage, rows)
            all_weights = np.concatenate(weights, axis=1)
            spread.append(np.ptp(all_weights, axis=0).max())  # for each weight, the largest minus the smallest value in all rows
            log.add(float(losses.mean()), all_weights)
            report(done)
    return Trained(
        network,
        readonly(all_weights[0]),
        *log.columns(),
        readonly(all_weights),
        readonly(np.array(spread)),
        peaks,
        rings.bytes_sent,
    )


def _step_of(schedule: Schedule, network: Network, run_pipeline: RunPipeline | None) -> Callable[..., _Step]:
    """Return the function that runs one step. It takes weights, inputs and labels, and returns losses, gradients and peaks."""
    if run_pipeline is not None:
        if not callable(run_pipeline):
            raise HybridLabError(f"run_pipeline is a function, or None for the executor, not {short_repr(run_pipeline)}", "wrong-type")
        lines, own = order_lines(schedule), run_pipeline
        return lambda weights, inputs, labels: (*gradients_by(own, lines, network, weights, inputs, labels), None)
    ops = in_running_order(schedule)

    def step(weights: list[Floats], inputs: Floats, labels: Ints) -> _Step:
        executor = Executor(network, weights, sum(schedule.paths, ()), inputs, labels, schedule.copy_of)
        executor.run(ops)
        return executor.losses, executor.gradients, readonly(executor.peak_activations)

    return step


def in_running_order(schedule: Schedule) -> tuple[Op, ...]:
    """Return the operations of all devices in the order of their slots. In this order, each operation comes after its input.

    Parameters
    ----------
    schedule : Schedule
        The schedule of one pipeline.

    Raises
    ------
    HybridLabError
        ``schedule`` is not a Schedule.

    Examples
    --------
    >>> from hybridlab.schedules import build
    >>> print(*in_running_order(build("1f1b", devices=2, microbatches=2)))
    0F0 1F0 0F1 1B0 0B0 1F1 1B1 0B1
    """
    if not isinstance(schedule, Schedule):
        raise HybridLabError(f"in_running_order takes a Schedule such as build('1f1b', 4, 8), not {short_repr(schedule)}", "not-a-schedule")
    return tuple(schedule.ops[row] for row in np.argsort(schedule.slot, kind="stable").tolist())


def equal_batch(schedule: Schedule, replicas: int) -> int:
    """Return the largest multiple of (replicas x microbatches) up to 128, or the smallest multiple if all are above 128.

    A global batch of this size can be cut into equal microbatches.

    >>> from hybridlab.schedules import build
    >>> equal_batch(build("1f1b", 3, 6), 4), equal_batch(build("1f1b", 3, 60), 4)
    (120, 240)
    """
    must_be_one_pipeline(schedule)
    parts = whole_number(replicas, "replicas") * schedule.microbatches
    return parts * max(1, 128 // parts)


class _StageRings:
    """The all-reduces of all stages. The object stores the residuals of error feedback from one step for the next step."""

    def __init__(
        self, wire: WireFormat, error_feedback: bool, all_reduce: AllReduce | None, weights: list[Floats], rng: np.random.Generator
    ) -> None:
        if all_reduce is not None and not callable(all_reduce):
            raise HybridLabError(
                f"all_reduce is a function of the gradients of a stage, or None for the ring, not {short_repr(all_reduce)}", "wrong-type"
            )
        feedback = true_or_false(error_feedback, "error_feedback")
        self.wire, self.all_reduce, self.rng = checked_wire(wire), all_reduce, rng
        self.residuals = [np.zeros_like(stage) if feedback else None for stage in weights]
        self.sent = [0] * len(weights)  # bytes that each stage sent in the last step

    @property
    def bytes_sent(self) -> int | None:
        """Bytes that all stages together sent in the last step. None if a function of the caller replaces the ring."""
        return sum(self.sent) if self.all_reduce is None else None

    def average(self, stage: int, gradients: Floats) -> Floats:
        """Return the average for each rank that holds the stage, shape (holders, parameters)."""
        if self.all_reduce is None:
            result = ring_all_reduce(gradients, self.wire, rng=self.rng, residual=self.residuals[stage])
            if result.residual is not None:
                self.residuals[stage] = result.residual.astype(np.float64, copy=False)
            self.sent[stage] = int(result.bytes_sent.sum())
            return result.values.astype(np.float64, copy=False)
        # The gradients are read-only, so that a function that adds in place raises an error instead of changing the gradients.
        averages = numbers(self.all_reduce(readonly(gradients)), "the result of all_reduce")
        if averages.shape != gradients.shape:
            wanted = f"all_reduce must return an average for each holder, shape {gradients.shape}"
            raise HybridLabError(f"{wanted}, not {averages.shape}", "wrong-shape")
        return averages


def must_be_one_pipeline(schedule: Any) -> None:
    """Raise an error if ``schedule`` is not the schedule of one pipeline."""
    if not isinstance(schedule, Schedule) or isinstance(schedule, Replicated):
        raise HybridLabError(
            f"training takes the Schedule of one pipeline, such as build('1f1b', 4, 8), not {short_repr(schedule)}", "not-a-schedule"
        )


def shape_of_labels(batch: int, replicas: int, microbatches: int) -> tuple[int, int, int]:
    """Return (replicas, microbatches, samples of a microbatch). Raise an error if the batch cannot be cut into equal microbatches."""
    parts = replicas * microbatches
    if batch % parts:
        below = batch - batch % parts
        near = f"{below} or {below + parts}" if below else f"{parts}"
        cut = f"{counted(microbatches, 'microbatch')} on {counted(replicas, 'replica')} are {parts} parts"
        raise HybridLabError(
            f"a global batch must be cut into equal parts: {cut}, and {batch} is not divisible by {parts}; try {near}",
            "not-divisible",
        )
    return replicas, microbatches, batch // parts
