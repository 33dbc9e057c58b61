"""A plan: how the GPUs of a cluster divide the layers, the matrices and the samples of one model."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

from hybridlab.checks import each_of, known_name, short_repr, true_or_false, whole_number, with_known_arguments
from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.hardware import Profile
from hybridlab.model.operations import Share
from hybridlab.model.transformer import Transformer, checked_recompute

A_MODEL = "Transformer(layers=96, hidden=12288, heads=96)"
A_PLAN = "Plan(tensor=8, pipeline=8, data=4, microbatch=1, global_batch=512)"
LEAST_BATCH = 512  # samples; every run in the calibration of the efficiency has at least this batch
SIZES = ("tensor", "pipeline", "data", "microbatch", "global_batch", "chunks", "context", "expert")
# The words that a plan takes, the software of 2021 first.
WORDS = {
    "attention": ("unfused", "fused"),
    "kernels": ("eager", "fused"),
    "precision": ("bf16", "fp8"),
    "gradients": ("bf16", "fp32"),
    "overlap": ("none", "backward", "all"),
    "dispatch": ("all-to-all", "by node"),
}


@with_known_arguments
@dataclass(frozen=True)
class Plan:
    """The way in which ``tensor`` x ``pipeline`` x ``data`` x ``context`` GPUs divide a model and a batch.

    The defaults are the software of 2021. :meth:`modern` has those of today.

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
    recompute : str or tuple of str
        Which activations are recomputed in the backward: "none", "selective" (the attention's core), "full" (the whole layer), or the
        names of operations, such as ("norm", "activation"); ``hybridlab.model.OPERATIONS`` has them.
    sequence_parallel : bool
        Whether the ``tensor`` GPUs also share the operations between the matrix products of a layer.
    context : int
        Number of GPUs that share each sample: every one has a part of its tokens, and keys and values go round (ring attention).
    expert : int
        Number of GPUs that share the experts of a layer. They are GPUs of several replicas and parts of a sample, so ``expert`` divides
        ``data`` x ``context``.
    zero : int
        What replicas divide among themselves: 0 nothing, 1 the state of the optimiser, 2 gradients too, 3 weights too (FSDP).
    attention : str
        "unfused", or "fused": one kernel that never writes the scores.
    kernels : str
        "eager": each operation is started by Python, which takes a least time for each layer. "fused": few large kernels.
    precision : str
        The operands of the products with weights: "bf16" or "fp8".
    gradients : str
        In what gradients are accumulated and sent: "bf16" or "fp32".
    stage_layers : tuple of int, optional
        Layers of each stage, or of each chunk in the order of the forward (``pipeline`` x ``chunks`` numbers). By default all are equal.
    overlap : str
        Which messages run at the same time as computation: "none"; "backward": the all-reduces inside a layer beside the gradients of its
        weights; "all": those of the forward too, messages of interleaved stages, gradients, gathers, and the exchange of experts.
    dispatch : str
        How a token goes to its experts: "all-to-all" sends a copy to each, "by node" one copy to each node.

    Raises
    ------
    HybridLabError
        A size is not a whole number of at least 1, or a word or an argument is unknown.
    UnsupportedSize
        The samples cannot be divided evenly among replicas and microbatches (``not-divisible``), or sizes do not suit each other: chunks
        and stages, experts and replicas, ``zero`` with one replica, ``context`` with unfused attention, ``stage_layers`` and stages.

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
    recompute: str | tuple[str, ...] = "full"
    sequence_parallel: bool = False
    _: KW_ONLY
    context: int = 1
    expert: int = 1
    zero: int = 0
    attention: str = "unfused"
    kernels: str = "eager"
    precision: str = "bf16"
    gradients: str = "bf16"
    stage_layers: tuple[int, ...] | None = None
    overlap: str = "none"
    dispatch: str = "all-to-all"

    def __post_init__(self) -> None:
        for field in SIZES:  # numpy integers become ints; object.__setattr__, because the dataclass is frozen
            object.__setattr__(self, field, whole_number(getattr(self, field), field))
        object.__setattr__(self, "zero", whole_number(self.zero, "zero", 0, 3))
        object.__setattr__(self, "recompute", checked_recompute(self.recompute))
        object.__setattr__(self, "sequence_parallel", true_or_false(self.sequence_parallel, "sequence_parallel"))
        for field, words in WORDS.items():
            known_name(getattr(self, field), words, field)
        if self.stage_layers is not None:
            given = each_of(self.stage_layers, "stage_layers must be a list of numbers of layers")
            object.__setattr__(self, "stage_layers", tuple(whole_number(each, "stage_layers", 0) for each in given))
        self._refuse_unsuitable()

    def _refuse_unsuitable(self) -> None:
        """Raise :class:`UnsupportedSize` if the sizes do not suit each other."""
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
        if self.copies % self.expert:
            fit = ", ".join(map(str, divisors(self.copies)))
            message = f"{self.expert} GPUs for the experts do not divide the {self.copies} of data x context: expert must be one of {fit}"
            raise UnsupportedSize(message, "not-divisible")
        if self.zero and self.copies == 1:
            message = f"zero={self.zero} divides among replicas, and there is only one: take zero=0, or data of at least 2"
            raise UnsupportedSize(message, "unsupported-size")
        if self.context > 1 and self.attention == "unfused":
            message = f"context={self.context} needs attention in one kernel, block by block: take attention='fused', or context=1"
            raise UnsupportedSize(message, "unsupported-size")
        parts = sorted({self.pipeline, self.pipeline * self.chunks})
        if self.stage_layers is not None and len(self.stage_layers) not in parts:
            message = (
                f"stage_layers has {len(self.stage_layers)} numbers, and one for each stage or chunk is {' or '.join(map(str, parts))}"
            )
            raise UnsupportedSize(message, "wrong-length")

    @classmethod
    def modern(cls, tensor: int, pipeline: int, data: int, microbatch: int, global_batch: int, chunks: int = 1, **changes: Any) -> "Plan":
        """Return a plan with the software of today. Other arguments of :class:`Plan` can be given by name.

        Attention and kernels are fused, nothing is recomputed, the GPUs that share a layer also share its tokens, replicas divide the
        state of the optimiser, gradients are FP32, and messages run beside computation.

        Raises
        ------
        HybridLabError
            As for :class:`Plan`.

        Examples
        --------
        >>> Plan.modern(4, 4, 2, 1, 128, chunks=5, context=2).gpus
        64
        """
        copies = whole_number(data, "data") * whole_number(changes.get("context", 1), "context")
        today = {
            "recompute": "none",
            "sequence_parallel": whole_number(tensor, "tensor") > 1,
            "zero": int(copies > 1),
            "attention": "fused",
            "kernels": "fused",
            "gradients": "fp32",
            "overlap": "all",
        }
        return cls(tensor, pipeline, data, microbatch, global_batch, chunks, **{**today, **changes})

    @property
    def gpus(self) -> int:
        """Number of GPUs."""
        return self.tensor * self.pipeline * self.data * self.context

    @property
    def copies(self) -> int:
        """Number of GPUs that have the same weights: data x context. They sum their gradients."""
        return self.data * self.context

    @property
    def microbatches(self) -> int:
        """Number of microbatches of one replica in one step."""
        return self.global_batch // (self.microbatch * self.data)

    @property
    def share(self) -> Share:
        """What one GPU does of a layer."""
        own = self.microbatch, self.tensor, self.recompute, self.sequence_parallel, self.context, self.expert
        return Share(*own, self.attention, self.kernels, self.precision)


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
    if plan.stage_layers is not None:
        if sum(plan.stage_layers) != model.layers:
            message = f"stage_layers sums to {sum(plan.stage_layers)}, and the model has {model.layers} layers"
            raise UnsupportedSize(f"{message}: give each layer to one stage", "does-not-fit")
    elif model.layers % (parts := plan.pipeline * plan.chunks):
        message = f"{plan.pipeline} stages" + (f" of {plan.chunks} chunks" if plan.chunks > 1 else "")
        fit = ", ".join(map(str, divisors(model.layers)))
        advice = (
            f"stages x chunks must be one of {fit}, or give stage_layers"
            if parts <= model.layers
            else f"stages x chunks must be one of {fit}"
        )
        raise UnsupportedSize(f"{model.layers} layers cannot be cut into {message}: {advice}", "not-divisible")
    if model.heads % plan.tensor:
        fit = ", ".join(map(str, divisors(model.heads)))
        raise UnsupportedSize(f"{model.heads} heads cannot be shared by {plan.tensor} GPUs: tensor must be one of {fit}", "not-divisible")
    if model.sequence % plan.context:
        fit = ", ".join(map(str, divisors(model.sequence)))
        message = f"{model.sequence} tokens cannot be shared by {plan.context} GPUs: context must be one of {fit}"
        raise UnsupportedSize(message, "not-divisible")
    if plan.expert > 1 and not model.experts:
        raise UnsupportedSize(f"expert={plan.expert} needs a model with experts: take expert=1", "unsupported-size")
    if model.experts and model.experts.count % plan.expert:
        fit = ", ".join(map(str, divisors(model.experts.count)))
        message = f"{model.experts.count} experts cannot be shared by {plan.expert} GPUs: expert must be one of {fit}"
        raise UnsupportedSize(message, "not-divisible")


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
