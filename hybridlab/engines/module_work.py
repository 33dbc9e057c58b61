"""Training of torch modules by an engine: each rank holds the modules of its stages, and autograd computes their gradients."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import short_repr
from hybridlab.engines.training_work import RankTrained, held_stages
from hybridlab.engines.work import StepWork
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Kind, Op, Schedule
from hybridlab.step.replicas import holders
from hybridlab.training.alone import checked_rate
from hybridlab.training.training import must_be_one_pipeline

MakeStage = Callable[[int], Any]  # stage -> torch.nn.Module; every call for a stage returns equal weights
Samples = Callable[[int, int, int], tuple[Any, Any]]  # (step, replica, microbatch) -> (inputs, targets)
Loss = Callable[[Any, Any], Any]  # (output of the last stage, targets) -> mean loss of the microbatch
Place = tuple[int, int]  # (stage, microbatch)


@dataclass
class _Modules:
    """The modules of one rank, and the tensors that its forwards and input gradients store for their backwards and weight gradients."""

    stages: dict[int, Any]
    flat: dict[int, Floats] = field(default_factory=dict)
    stored: dict[Place, tuple[Any, Any]] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    step: int = 0


class ModuleWork(StepWork):
    """Training steps of stages that are torch modules, for any schedule and any engine.

    An input gradient runs autograd for the input alone, and a weight gradient runs autograd for the weights. The rings average the
    gradients in the wire format of the run. Then each rank takes one step of SGD.

    Parameters
    ----------
    schedule : Schedule
        The schedule of one pipeline. Give the same schedule to the run.
    replicas : int
        The number of pipelines. Give the same number to the run.
    make_stage : callable
        ``make_stage(stage)`` returns the module of a stage. Ranks that hold the same stage must get the same weights.
    samples : callable
        ``samples(step, replica, microbatch)`` returns the inputs and the targets of a microbatch, as tensors. All microbatches have the
        same size.
    loss : callable
        ``loss(output, targets)`` returns the mean loss of a microbatch, as a tensor with one number.
    learning_rate : float
        The factor of the gradient in each SGD step.

    Raises
    ------
    HybridLabError
        ``schedule`` is not the schedule of one pipeline, an argument is not a function, or the learning rate is not above 0.
    """

    def __init__(
        self, schedule: Schedule, replicas: int, make_stage: MakeStage, samples: Samples, loss: Loss, learning_rate: float = 0.1
    ) -> None:
        must_be_one_pipeline(schedule)
        for name, value in (("make_stage", make_stage), ("samples", samples), ("loss", loss)):
            if not callable(value):
                raise HybridLabError(f"{name} is a function, not {short_repr(value)}", "wrong-type")
        self._schedule, self._make_stage, self._samples, self._loss = schedule, make_stage, samples, loss
        self._rate, self._holders = checked_rate(learning_rate), holders(schedule, replicas)
        self._ranks: dict[int, _Modules] = {}  # key: the rank; a process that works for one rank has only this rank

    def begin(self, rank: int, step: int) -> None:
        """Create the modules before the first step, and clear their gradients before every step."""
        if step == 0:
            held = held_stages(self._holders, rank)
            self._ranks[rank] = _Modules({stage: self._make_stage(stage) for stage in held})
        own = self._ranks[rank]
        own.step, own.flat = step, {}
        own.losses.append(0.0)
        for module in own.stages.values():
            module.zero_grad()

    def work(self, rank: int, op: Op, message: Any) -> Any:
        """Compute an operation with autograd. The message and the output are numpy arrays."""
        import torch

        own, place, last = self._ranks[rank], (op.stage, op.microbatch), op.stage == self._schedule.stages - 1
        if op.kind is Kind.F:
            return self._forward(own, rank, op, message, last)
        inputs, output = own.stored.pop(place)
        weights = list(own.stages[op.stage].parameters())
        if op.kind is Kind.W:
            output, gradient = output  # the input gradient has stored the pair (output, gradient)
            _accumulate(weights, torch.autograd.grad(output, weights, gradient))
            return None
        gradient = None if last else torch.from_numpy(message)
        wanted = [inputs] if op.stage else []  # stage 0 does not need the gradient with respect to the samples
        if op.kind is Kind.I:
            own.stored[place] = inputs, (output, gradient)
            # retain_graph, because the weight gradient needs the same graph later
            found: tuple[Any, ...] = torch.autograd.grad(output, wanted, gradient, retain_graph=True) if wanted else ()
        else:
            found = torch.autograd.grad(output, [*weights, *wanted], gradient)
            _accumulate(weights, found[: len(weights)])
        return found[-1].numpy() if wanted else None

    def gradients(self, rank: int, stage: int) -> Floats:
        """Return the gradients of all weights of a stage in one array. The ring averages this array in place."""
        own = self._ranks[rank]
        if stage not in own.flat:
            own.flat[stage] = np.concatenate([each.grad.numpy().ravel() for each in own.stages[stage].parameters()]).astype(np.float64)
        return own.flat[stage]

    def update(self, rank: int) -> None:
        """Take one step of SGD with the averaged gradients."""
        import torch

        with torch.no_grad():
            for stage, module in self._ranks[rank].stages.items():
                flat, first = torch.from_numpy(self.gradients(rank, stage)), 0
                for weight in module.parameters():
                    weight -= self._rate * flat[first : first + weight.numel()].view_as(weight).to(weight.dtype)
                    first += weight.numel()

    def result(self, rank: int) -> RankTrained:
        """Return the weights of the rank's stages (one array for each stage) and the rank's losses."""
        own = self._ranks.pop(rank)
        flat = {stage: [each.detach().numpy().ravel() for each in module.parameters()] for stage, module in own.stages.items()}
        return RankTrained({stage: np.concatenate(parts) for stage, parts in flat.items()}, tuple(own.losses))

    def _forward(self, own: _Modules, rank: int, op: Op, message: Any, last: bool) -> Any:
        """Compute a forward, store its tensors, and return its output as an array (None on the last stage)."""
        import torch

        replica, schedule = rank // self._schedule.devices, self._schedule
        inputs, targets = self._samples(own.step, replica, op.microbatch) if last or not op.stage else (None, None)
        if op.stage:
            inputs = torch.from_numpy(message).requires_grad_()
        output = own.stages[op.stage](inputs)
        if last:
            # with this factor, the mean of the gradients over all holders is the gradient of the mean loss
            output = self._loss(output, targets) * schedule.copies / schedule.microbatches
            own.losses[-1] += output.item() / self._holders.shape[1]
        own.stored[op.stage, op.microbatch] = inputs, output
        return None if last else output.detach().numpy()


def _accumulate(weights: Sequence[Any], gradients: Sequence[Any]) -> None:
    """Add gradients to the gradients that the weights already have."""
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.grad = gradient if weight.grad is None else weight.grad + gradient
