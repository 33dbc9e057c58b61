"""Training on K stages x D replicas: a schedule run op by op, gradients averaged through a ring in a wire format."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hybridlab.arrays import Floats, readonly
from hybridlab.checks import counted, numbers, short_repr, whole_number
from hybridlab.collectives import ring_all_reduce
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Op, Schedule
from hybridlab.step.replicas import Replicated, holders
from hybridlab.training.alone import DEFAULT
from hybridlab.training.data import DataSet, batches
from hybridlab.training.executor import Executor
from hybridlab.training.network import Network
from hybridlab.training.results import Log, Progress, Trained, data_for, generators, rate_of
from hybridlab.wire import FP32, WireFormat

AllReduce = Callable[[Floats], Any]  # (holders, parameters of a stage) -> the same shape


def train(
    schedule: Schedule,
    replicas: int = 1,
    *,
    wire: WireFormat = FP32,
    error_feedback: bool = False,
    all_reduce: AllReduce | None = None,
    by_label: bool = False,
    network: Network = DEFAULT,
    data: DataSet | None = None,
    batch: int = 128,
    steps: int = 200,
    learning_rate: float = 0.3,
    seed: int = 0,
    every: int | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Return the network after ``steps`` of SGD on ``replicas`` pipelines that each run ``schedule``.

    A step cuts a global batch of ``batch`` samples into equal parts, one for each microbatch of each replica, runs the operations of
    ``schedule`` one by one in the order of its slots, and averages the gradients of every stage over its holders
    with one :func:`~hybridlab.collectives.ring_all_reduce` in the form ``wire``, with ``error_feedback`` if wanted.
    Holders are the replicas; of a schedule with two copies of the weights, both copies of every replica, each with the
    gradients of its own microbatches. Each holder then updates weights of its own.
    ``by_label`` deals every global batch out in the order of its labels, so that replicas see different digits.

    ``all_reduce`` takes the place of the ring: a function of the gradients of one stage, shape (holders, parameters), that
    returns the average for each holder in the same shape. The other arguments are those of :func:`train_alone`, which takes the
    same batches from the same first weights. All computing is in float64, so that what differs from one device is the wire's.

    Raises :class:`HybridLabError` for a batch that cannot be cut into equal microbatches, more stages than layers, and
    numbers that the wire cannot carry.

    >>> from hybridlab.schedules import build
    >>> trained = train(build("1f1b", devices=2, microbatches=4), replicas=2, steps=20)
    >>> trained.losses[[0, -1]].round(2), trained.spread.max(), trained.peak_activations
    (array([2.32, 0.9 ]), np.float64(0.0), array([2., 1.]))
    """
    _must_be_one_pipeline(schedule)
    if not isinstance(by_label, bool):
        raise HybridLabError(f"by_label must be True or False, not {short_repr(by_label)}")
    data = data_for(network, data)
    shape = _microbatches(whole_number(batch, "batch"), whole_number(replicas, "replicas"), schedule.microbatches)
    for_weights, for_batches, for_wire = generators(seed)
    ends = np.cumsum([network.count(layers) for layers in network.stages(schedule.stages)])
    start = np.tile(network.initial(for_weights), (holders(schedule, shape[0]).shape[1], 1))
    weights = [stage.copy() for stage in np.split(start, ends[:-1], axis=1)]
    wires = _Wires(wire, error_feedback, all_reduce, weights, for_wire)
    ops = in_running_order(schedule)
    log, rate, spread = Log(network, data, whole_number(steps, "steps"), every, progress), rate_of(learning_rate), []
    for chosen in batches(len(data.labels), batch, log.steps, for_batches):
        if by_label:
            chosen = chosen[np.argsort(data.labels[chosen], kind="stable")]
        inputs, labels = data.inputs[chosen].reshape(*shape, -1), data.labels[chosen].reshape(shape)
        step = Executor(network, weights, sum(schedule.paths, ()), inputs, labels, schedule.copy_of)
        with np.errstate(all="ignore"):  # what is no longer finite is refused in a sentence
            step.run(ops)
        log.must_be_finite(step.losses)
        for stage, gradients in enumerate(step.gradients):
            weights[stage] = weights[stage] - rate * wires.averaged(stage, gradients)
        all_weights = np.concatenate(weights, axis=1)
        spread.append(np.ptp(all_weights, axis=0).max())
        log.add(float(step.losses.mean()), all_weights)
    rest = readonly(np.array(spread)), readonly(step.peak_activations), wires.bytes_sent
    return Trained(network, readonly(all_weights[0]), *log.columns(), readonly(all_weights), *rest)


def in_running_order(schedule: Schedule) -> tuple[Op, ...]:
    """Return the operations of all devices in the order of their slots: one order in which each finds its input.

    >>> from hybridlab.schedules import build
    >>> print(*in_running_order(build("1f1b", devices=2, microbatches=2)))
    0F0 1F0 0F1 1B0 0B0 1F1 1B1 0B1
    """
    if not isinstance(schedule, Schedule):
        raise HybridLabError(f"only a Schedule has slots, such as build('1f1b', 4, 8), not {short_repr(schedule)}")
    return tuple(schedule.ops[row] for row in np.argsort(schedule.slot, kind="stable").tolist())


def equal_batch(schedule: Schedule, replicas: int) -> int:
    """Return the largest global batch up to 128 that is cut into equal microbatches, or the least there is.

    >>> from hybridlab.schedules import build
    >>> equal_batch(build("1f1b", 3, 6), 4), equal_batch(build("1f1b", 3, 60), 4)
    (120, 240)
    """
    _must_be_one_pipeline(schedule)
    parts = whole_number(replicas, "replicas") * schedule.microbatches
    return parts * max(1, 128 // parts)


class _Wires:
    """The all-reduce of every stage, with what it remembers from step to step: the residuals of error feedback."""

    def __init__(
        self, wire: WireFormat, error_feedback: bool, all_reduce: AllReduce | None, weights: list[Floats], rng: np.random.Generator
    ) -> None:
        if not isinstance(wire, WireFormat) or not isinstance(error_feedback, bool):
            raise HybridLabError(f"the ring takes a WireFormat, and error_feedback True or False, not {short_repr((wire, error_feedback))}")
        if all_reduce is not None and not callable(all_reduce):
            raise HybridLabError(
                f"all_reduce is a function of the gradients of a stage, or None for the ring, not {short_repr(all_reduce)}"
            )
        self.wire, self.all_reduce, self.rng = wire, all_reduce, rng
        self.residuals = [np.zeros_like(stage) if error_feedback else None for stage in weights]
        self.sent = [0] * len(weights)  # bytes, of the last step

    @property
    def bytes_sent(self) -> int | None:
        return sum(self.sent) if self.all_reduce is None else None

    def averaged(self, stage: int, gradients: Floats) -> Floats:
        """Return what each holder of a stage finds in place of its gradients."""
        if self.all_reduce is None:
            result = ring_all_reduce(gradients, self.wire, rng=self.rng, residual=self.residuals[stage])
            if result.residual is not None:
                self.residuals[stage] = result.residual.astype(np.float64, copy=False)
            self.sent[stage] = int(result.bytes_sent.sum())
            return result.values.astype(np.float64, copy=False)
        mine = numbers(self.all_reduce(readonly(gradients)), "what all_reduce returns")
        if mine.shape != gradients.shape:
            raise HybridLabError(f"all_reduce must return an average for each holder, shape {gradients.shape}, not {mine.shape}")
        return mine


def _must_be_one_pipeline(schedule: Any) -> None:
    if not isinstance(schedule, Schedule) or isinstance(schedule, Replicated):
        raise HybridLabError(f"training takes the Schedule of one pipeline, such as build('1f1b', 4, 8), not {short_repr(schedule)}")


def _microbatches(batch: int, replicas: int, microbatches: int) -> tuple[int, int, int]:
    """Return (replicas, microbatches, samples of one), or refuse a batch that is not cut into equal parts."""
    parts = replicas * microbatches
    if batch % parts:
        below = batch - batch % parts
        near = f"{below} or {below + parts}" if below else f"{parts}"
        message = f"{counted(microbatches, 'microbatch')} on {counted(replicas, 'replica')} make {parts} parts"
        raise HybridLabError(
            f"a global batch must be cut into equal microbatches: {message}, and {batch} is not divisible by it; try {near}"
        )
    return replicas, microbatches, batch // parts
