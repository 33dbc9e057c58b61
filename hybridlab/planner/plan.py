"""A plan: how the GPUs of a cluster divide the layers, the matrices and the samples of one model."""

import math
from dataclasses import dataclass

from hybridlab.checks import known_name, short_repr, true_or_false, whole_number, with_known_arguments
from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.hardware import Profile
from hybridlab.model import RECOMPUTE, Transformer

A_MODEL = "Transformer(layers=96, hidden=12288, heads=96)"
A_PLAN = "Plan(tensor=8, pipeline=8, data=4, microbatch=1, global_batch=512)"
LEAST_BATCH = 512  # samples; every run in the calibration of the efficiency has at least this batch
SIZES = ("tensor", "pipeline", "data", "microbatch", "global_batch", "chunks")


@with_known_arguments
@dataclass(frozen=True)
class Plan:
    """The way in which ``tensor`` x ``pipeline`` x ``data`` GPUs divide a model and a batch.

    Parameters
    ----------
    tensor : int
        Number of GPUs that share each layer.
    pipeline : int
        Number of pipeline stages.
    data : int
        Number of replicas.
    microbatch : int
        Samples in one microbatch.
    global_batch : int
        Samples in one step, over all replicas.
    chunks : int
        Chunks on each stage. More than 1 means interleaved 1F1B.
    recompute : str
        Which activations are recomputed in the backward: "none", "selective" (the attention's core) or "full" (the whole layer).
    sequence_parallel : bool
        Whether the ``tensor`` GPUs also share the operations between the matrix products of a layer.

    Raises
    ------
    HybridLabError
        A size is not a whole number of at least 1, or the kind of recomputation or an argument is unknown. There is no expert parallelism.
    UnsupportedSize
        The samples cannot be divided evenly among replicas and microbatches (``not-divisible``), or the chunks do not suit the pipeline.

    Examples
    --------
    >>> plan = Plan(tensor=8, pipeline=8, data=24, microbatch=2, global_batch=2304, chunks=2)
    >>> plan.gpus, plan.microbatches
    (1536, 48)
    >>> Plan(tensor=8, pipeline=4, data=3, microbatch=1, global_batch=16)
    Traceback (most recent call last):
    hybridlab.errors.UnsupportedSize: 3 replicas with microbatches of 1 need a global batch that is a multiple of 3, not 16; try 15 or 18
    """

    tensor: int
    pipeline: int
    data: int
    microbatch: int
    global_batch: int
    chunks: int = 1
    recompute: str = "full"
    sequence_parallel: bool = False

    def __post_init__(self) -> None:
        for field in SIZES:  # numpy integers become ints; object.__setattr__, because the dataclass is frozen
            object.__setattr__(self, field, whole_number(getattr(self, field), field))
        known_name(self.recompute, RECOMPUTE, "recomputation")
        object.__setattr__(self, "sequence_parallel", true_or_false(self.sequence_parallel, "sequence_parallel"))
        step = self.microbatch * self.data
        if self.global_batch % step:
            message = f"{self.data} replicas with microbatches of {self.microbatch} need a global batch that is a multiple of {step}"
            raise UnsupportedSize(f"{message}, not {self.global_batch}{_nearest_multiples(self.global_batch, step)}", "not-divisible")
        if self.chunks > 1 and self.pipeline == 1:
            message = f"{self.chunks} chunks need a pipeline of at least 2 stages: with one stage take chunks=1"
            raise UnsupportedSize(message, "unsupported-size")
        # interleaved 1F1B needs a number of microbatches that is a multiple of the stages
        if self.chunks > 1 and self.microbatches % self.pipeline:
            message = f"{self.microbatches} is not a multiple of {self.pipeline}{_nearest_multiples(self.microbatches, self.pipeline)}"
            raise UnsupportedSize(f"interleaved needs microbatches a multiple of the stages: {message}, or chunks=1", "not-divisible")

    @property
    def gpus(self) -> int:
        """Number of GPUs."""
        return self.tensor * self.pipeline * self.data

    @property
    def microbatches(self) -> int:
        """Number of microbatches of one replica in one step."""
        return self.global_batch // (self.microbatch * self.data)


def checked_model(model: object) -> Transformer:
    """Return ``model`` if it is a Transformer, or raise an error."""
    if not isinstance(model, Transformer):
        raise HybridLabError(f"model must be a Transformer, such as {A_MODEL}, not {short_repr(model)}", "wrong-type")
    return model


def checked_profile(profile: object) -> Profile:
    """Return ``profile`` if it is a Profile, or raise an error."""
    if not isinstance(profile, Profile):
        message = f"profile must be a Profile of hybridlab.hardware, such as A100_80GB, not {short_repr(profile)}"
        raise HybridLabError(message, "wrong-type")
    return profile


def refuse_misfit(model: Transformer, plan: Plan) -> None:
    """Raise an error if the layers cannot form equal stages, or the tensor GPUs cannot share the heads equally."""
    checked_model(model)
    if not isinstance(plan, Plan):
        raise HybridLabError(f"plan must be a Plan, such as {A_PLAN}, not {short_repr(plan)}", "wrong-type")
    parts = plan.pipeline * plan.chunks
    if model.layers % parts:
        message = f"{plan.pipeline} stages" + (f" of {plan.chunks} chunks" if plan.chunks > 1 else "")
        fit = ", ".join(map(str, divisors(model.layers)))
        raise UnsupportedSize(f"{model.layers} layers cannot be cut into {message}: stages x chunks must be one of {fit}", "not-divisible")
    if model.heads % plan.tensor:
        fit = ", ".join(map(str, divisors(model.heads)))
        raise UnsupportedSize(f"{model.heads} heads cannot be shared by {plan.tensor} GPUs: tensor must be one of {fit}", "not-divisible")


def samples_of(gpus: int, global_batch: int | None) -> int:
    """Return the number of samples in a step: ``global_batch``, or by default one sample for each GPU, but at least 512."""
    return max(gpus, LEAST_BATCH) if global_batch is None else global_batch


def tensor_degrees(model: Transformer, profile: Profile) -> list[int]:
    """Return the possible tensor degrees in increasing order. They divide the number of GPUs of a node and the heads of the model."""
    return [count for count in divisors(profile.gpus_per_node) if not model.heads % count]


def divisors(number: int) -> list[int]:
    """Return all divisors of a number in increasing order."""
    # each divisor d above the square root has a partner number / d below it
    small = [count for count in range(1, math.isqrt(number) + 1) if number % count == 0]
    return sorted({*small, *(number // count for count in small)})


def _nearest_multiples(count: int, step: int) -> str:
    """Return the advice to try the multiples of ``step`` nearest to ``count``."""
    below = count // step * step
    return f"; try {below} or {below + step}" if below else f"; try {step}"  # the multiple 0 is no useful advice
