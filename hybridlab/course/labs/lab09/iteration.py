"""The coding task ('build') of lab 9, ``iteration_time(model, plan, rates)``.

This file has its cases, the right times of the parts, the known mistakes and the changes of the task ('twists').
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from hybridlab.checks import counted
from hybridlab.collectives import Link, all_reduce_time
from hybridlab.course.checking.answers import plain_values, require_entries, require_number
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.maps import Map, at, each_number, of_value, renamed, scaled
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.model import Transformer
from hybridlab.planner import Plan
from hybridlab.planner.stages import stage_parameters

Numbers = dict[str, float]
NAMES = ("compute", "tensor", "messages", "bubble", "gradients", "total")
GRADIENT = 2  # bytes of one gradient in FP16, and of one activation
TINY: tuple[Numbers, Numbers] = ({"layers": 1, "hidden": 8, "sequence": 8, "vocabulary": 16}, {"flops": 1e6, "nvlink": 1e5, "network": 1e4})


class Pieces(NamedTuple):
    """The times from which the parts of an iteration are added up, in seconds.

    ``gradients`` is a time of the whole iteration. Every other time is that of one microbatch on one stage.

    Attributes
    ----------
    microbatches, stages : int
        The number of microbatches of one replica, M, and the number of stages, K.
    layers, logits : float
        The time to compute the layers of a stage, and the logits.
    layer_rings, logit_ring : float
        The time of the all-reduces of tensor parallelism: in the layers of a stage, and after the logits.
    exchange : float
        The time of one message to the next stage and one message back.
    gradients : float
        The time of the all-reduce of one device's gradients over the replicas.
    """

    microbatches: int
    stages: int
    layers: float
    logits: float
    layer_rings: float
    logit_ring: float
    exchange: float
    gradients: float


Change = Callable[[Pieces, Numbers, Numbers], Pieces | Numbers]  # takes the right pieces, the plan and the model


def pieces_of(shape: Transformer, plan: Plan, rates: Numbers) -> Pieces:
    """Return the pieces of an iteration. The library counts the operations, bytes and parameters.

    >>> pieces = pieces_of(Transformer(8, 64, 1, 512, 32), Plan(1, 2, 2, 4, 16), {"flops": 1e9, "nvlink": 1e9, "network": 1e6})
    >>> pieces.microbatches, round(pieces.layers, 3), pieces.exchange
    (2, 0.218, 0.032768)
    """
    layer = shape.layer_work(plan.microbatch, plan.tensor, plan.recompute)
    head = shape.head_work(plan.microbatch, plan.tensor)
    count, nbytes = shape.layers / plan.pipeline, GRADIENT * float(plan.microbatch * shape.sequence * shape.hidden)
    ring = _ring_time(plan.tensor, nbytes, rates["nvlink"])
    return Pieces(
        microbatches=plan.microbatches,
        stages=plan.pipeline,
        layers=count * layer.flops / rates["flops"],
        logits=head.flops / rates["flops"],
        layer_rings=count * layer.all_reduces * ring,
        logit_ring=head.all_reduces * ring,
        exchange=2 * nbytes / plan.tensor / rates["network"] if plan.pipeline > 1 else 0.0,
        gradients=_ring_time(plan.data, GRADIENT * stage_parameters(shape, plan), rates["network"]),
    )


def _ring_time(ranks: int, nbytes: float, rate: float) -> float:
    return float(all_reduce_time("ring", ranks, nbytes, Link(0, rate))) if ranks > 1 else 0.0


def read_shape(model: Numbers, plan: Numbers, recompute: str = "full") -> tuple[Transformer, Plan]:
    """Return the library's transformer and plan for two arguments of a student's function."""
    shape = Transformer(int(model["layers"]), int(model["hidden"]), 1, int(model["vocabulary"]), int(model["sequence"]))
    tensor, stages, replicas, microbatch, batch = (int(plan[name]) for name in ("tensor", "stages", "replicas", "microbatch", "batch"))
    return shape, Plan(tensor, stages, replicas, microbatch, batch, recompute=recompute)


def summed(pieces: Pieces, bubble: float | None = None) -> Numbers:
    """Return the seconds of each part of an iteration, and their total.

    Without ``bubble``, the bubble is that of 1F1B: K-1 times the time of one microbatch on a stage without logits.
    """
    count, idle = pieces.microbatches, pieces.layers + pieces.layer_rings + pieces.exchange
    parts = {
        "compute": count * (pieces.layers + pieces.logits),
        "tensor": count * (pieces.layer_rings + pieces.logit_ring),
        "messages": count * pieces.exchange,
        "bubble": (pieces.stages - 1) * idle if bubble is None else bubble,
        "gradients": pieces.gradients,
    }
    return parts | {"total": sum(parts.values())}


def read_parts(returned: Any) -> Numbers:
    """Return the times in a student's result in the order of ``NAMES``, or raise an error if the result is no dict of these times."""
    given = require_entries(plain_values(returned), NAMES, f"a dict of seconds with the entries {', '.join(NAMES)}")
    return {name: require_number(given[name], f"the entry {name!r}") for name in NAMES}


def iterations(rng: np.random.Generator) -> Iterator[Case]:
    """Yield iterations of random models: one GPU, then one kind of parallelism at a time, then all three with larger models."""
    small, slow = TINY
    yield _iteration_case(small, (1, 1, 1, 1, 1), slow)
    for sizes in ((1, 1, 1, 2, 6), (2, 1, 1, 1, 2), (1, 1, 2, 1, 2), (1, 1, 3, 1, 6), (1, 2, 1, 1, 2), (1, 4, 1, 1, 1), (1, 3, 1, 2, 20)):
        drawn = {name: 2 * int(rng.integers(4, 21)) for name in ("hidden", "sequence", "vocabulary")}
        if sizes == (1, 1, 2, 1, 2):  # a stage so narrow that its biases, 13 h, are a large share of its parameters
            drawn = {"hidden": 2, "sequence": 2 * int(rng.integers(4, 11)), "vocabulary": 2 * int(rng.integers(4, 11))}
        yield _iteration_case(small | {"layers": 12 * int(rng.integers(1, 4))} | drawn, sizes, slow)
    for tensor, stages, replicas, microbatches in ((2, 2, 2, 1), (4, 3, 2, 4), (8, 1, 3, 2), (1, 8, 4, 3), (2, 4, 2, 16), (8, 4, 16, 8)):
        model: Numbers = {
            "layers": stages * int(rng.integers(1, 9)),
            "hidden": 128 * int(rng.integers(6, 97)),
            "sequence": 512 * int(rng.integers(1, 9)),
            "vocabulary": 1024 * int(rng.integers(20, 129)),
        }
        size = int(rng.integers(1, 5))
        rates = {name: float(rng.integers(10, 40)) * unit for name, unit in (("flops", 1e13), ("nvlink", 1e10), ("network", 1e9))}
        yield _iteration_case(model, (tensor, stages, replicas, size, size * replicas * microbatches), rates)


def _iteration_case(model: Numbers, sizes: tuple[int, ...], rates: Numbers) -> Case:
    plan = dict(zip(("tensor", "stages", "replicas", "microbatch", "batch"), sizes, strict=True))
    tensor, stages, replicas, size, batch = sizes
    devices = f"tensor = {tensor}, stages = {stages}, replicas = {replicas}"
    return Case((dict(model), plan, dict(rates)), f"{devices} and {counted(batch // size // replicas, 'microbatch')} of a replica")


def _mistake(
    code: str, sentence: str, change: Change, recompute: str = "full", under: Mapping[str, str | None] | None = None
) -> KnownMistake:
    """Return a known mistake. ``change`` takes the right pieces, the plan and the model, and returns wrong pieces or wrong parts."""

    def result(model: Numbers, plan: Numbers, rates: Numbers) -> Numbers:
        shape, cut = read_shape(model, plan, recompute)
        changed = change(pieces_of(shape, cut, rates), plan, model)
        return summed(changed) if isinstance(changed, Pieces) else changed

    return KnownMistake(code, sentence, result, under or {})


def _scale(**factors: float) -> Callable[[Pieces, Numbers, Numbers], Pieces]:
    return lambda pieces, plan, model: pieces._replace(**{name: factor * getattr(pieces, name) for name, factor in factors.items()})


def _without_attention(pieces: Pieces, plan: Numbers, model: Numbers) -> Pieces:
    return pieces._replace(layers=pieces.layers / (1 + model["sequence"] / (6 * model["hidden"])))


def _all_layers(pieces: Pieces, plan: Numbers, model: Numbers) -> Pieces:
    return pieces._replace(layers=plan["stages"] * pieces.layers, layer_rings=plan["stages"] * pieces.layer_rings)


def _all_samples(pieces: Pieces, plan: Numbers, model: Numbers) -> Pieces:
    return pieces._replace(microbatches=int(plan["batch"] / plan["microbatch"]))


def _bubble_share(pieces: Pieces, plan: Numbers, model: Numbers) -> Numbers:
    count, stages = pieces.microbatches, pieces.stages
    return summed(pieces, (stages - 1) / (count + stages - 1) * count * (pieces.layers + pieces.layer_rings + pieces.exchange))


def _ring_once(pieces: Pieces, plan: Numbers, model: Numbers) -> Pieces:
    factors = {name: 2 * (plan[name] - 1) / plan[name] or 1 for name in ("tensor", "replicas")}
    rings = {name: getattr(pieces, name) / factors["tensor"] for name in ("layer_rings", "logit_ring")}
    return pieces._replace(**rings, gradients=pieces.gradients / factors["replicas"])


MISTAKES = (
    _mistake(
        "no-recomputation",
        "this lacks the recomputation: a layer runs its forward twice, so it computes as much as 4 forwards, not 3, and "
        "has 6 all-reduces, not 4",
        lambda pieces, plan, model: pieces,
        recompute="none",
    ),
    _mistake(
        "backward-like-forward",
        "this counts the backward of a layer as one forward: a backward takes as long as two forwards, one for the gradients of the "
        "inputs and one for those of the weights",
        _scale(layers=3 / 4, logits=2 / 3),
    ),
    _mistake("no-attention", "`compute` lacks the products of the attention, the factor 1 + s/(6h)", _without_attention),
    _mistake("no-logits", "`compute` lacks the logits of the last stage, which is the slowest one", _scale(logits=0)),
    _mistake(
        "layers-not-shared",
        "`compute` lacks the division by t: the GPUs that share a layer share its operations",
        lambda pieces, plan, model: pieces._replace(layers=plan["tensor"] * pieces.layers, logits=plan["tensor"] * pieces.logits),
    ),
    _mistake(
        "all-layers",
        "this gives all layers to each stage: a stage has l/K of the layers",
        _all_layers,
        under={"layers-of-a-stage": "`layers` is the number of layers of one stage: this gives K times as many to each stage"},
    ),
    _mistake(
        "samples-of-all-replicas",
        "this takes batch / b microbatches: the replicas share the batch, so one replica has M = batch / (D b) microbatches",
        _all_samples,
        under={
            "tokens": "this takes batch / (b s) microbatches: the replicas share the batch, so one replica has M = batch / (D b s)",
            "microbatches": "this takes D times as many microbatches: `microbatches` is the number of microbatches of one replica",
        },
    ),
    _mistake(
        "activations-without-bytes",
        "this counts one byte for each activation: an activation takes 2 bytes",
        _scale(layer_rings=0.5, logit_ring=0.5, exchange=0.5),
    ),
    _mistake(
        "bits",
        "this divides the bandwidths by 8: they are in bytes per second, not in bits",
        _scale(layer_rings=8, logit_ring=8, exchange=8, gradients=8),
        under={"bits": None},
    ),
    _mistake(
        "no-ring-factor",
        "this sends S bytes for an all-reduce of S bytes: each of n GPUs sends 2 (n-1)/n S",
        _ring_once,
    ),
    _mistake(
        "half-a-ring",
        "this has only half of a ring's steps: n-1 steps add up, and n-1 further steps pass the sums on",
        _scale(layer_rings=1 / 2, logit_ring=1 / 2, gradients=1 / 2),
    ),
    _mistake(
        "one-direction",
        "this has the messages of one direction: the activations go to the next stage, and their gradients come back",
        _scale(exchange=1 / 2),
    ),
    _mistake(
        "messages-not-shared",
        "this sends a whole message through one port: each of the t GPUs of a stage sends 1/t of the message through its own port",
        lambda pieces, plan, model: pieces._replace(exchange=plan["tensor"] * pieces.exchange),
    ),
    _mistake(
        "bubble-of-k",
        "this bubble is K times the time of one microbatch on a stage: a pipeline fills and drains in K-1 times that time",
        lambda pieces, plan, model: summed(pieces, pieces.stages * (pieces.layers + pieces.layer_rings + pieces.exchange)),
    ),
    _mistake(
        "bubble-ratio",
        "this takes (K-1)/(M+K-1), the share of the bubble in the whole pipeline: the bubble is (K-1)/M of the time of M microbatches",
        _bubble_share,
    ),
    _mistake(
        "bubble-with-logits",
        "this bubble includes the logits: in the bubble the last stage waits for the other stages, and these have no logits",
        lambda pieces, plan, model: summed(
            pieces,
            (pieces.stages - 1) * (pieces.layers + pieces.layer_rings + pieces.exchange + pieces.logits + pieces.logit_ring),
        ),
    ),
    _mistake(
        "bubble-of-computing-alone",
        "this bubble includes computing alone: to fill and drain, a stage also waits for the all-reduces and the messages of a microbatch",
        lambda pieces, plan, model: summed(pieces, (pieces.stages - 1) * pieces.layers),
    ),
    _mistake(
        "parameters-over-replicas",
        "this divides the parameters by D: each replica has all gradients of its stage, and replicas share the samples, not the model",
        lambda pieces, plan, model: pieces._replace(gradients=pieces.gradients / plan["replicas"]),
    ),
)


def _scale_gradients(factor: float, parts: Numbers) -> Numbers:
    """Return the parts of an iteration in which a gradient takes ``factor`` times as many bytes."""
    gradients = factor * parts["gradients"]
    return {**parts, "gradients": gradients, "total": parts["total"] + gradients - parts["gradients"]}


def _divide_by_total(parts: Numbers, case: tuple[Any, ...]) -> Numbers:
    return {name: part if name == "total" else part / parts["total"] for name, part in parts.items()}


def _multiply_by_total(parts: Numbers, case: tuple[Any, ...]) -> Numbers:
    return {name: part if name == "total" else part * parts["total"] for name, part in parts.items()}


def _entry(name: str, old: str, factor: Callable[[Numbers, Numbers], float]) -> Map:
    """Return the map that replaces the entry ``old`` of a dict by the entry ``name``.

    The value of the entry is multiplied by ``factor``, a function of the model and the plan.
    """
    times = each_number(lambda value, case: round(value * factor(*case[:2])), lambda value, case: round(value / factor(*case[:2])))
    return renamed({old: name}).then(at(name, times))


GPUS = _entry("gpus", "replicas", lambda model, plan: plan["tensor"] * plan["stages"])
MICROBATCHES = _entry("microbatches", "batch", lambda model, plan: 1 / (plan["replicas"] * plan["microbatch"]))
TOKENS = _entry("batch", "batch", lambda model, plan: model["sequence"])
STAGE_LAYERS = _entry("layers", "layers", lambda model, plan: 1 / plan["stages"])
FP32 = of_value(lambda parts: _scale_gradients(2, parts), lambda parts: _scale_gradients(1 / 2, parts))
SHARES = Map(_divide_by_total, _multiply_by_total)

EXAMPLES = (
    Example(
        (
            {"layers": 4, "hidden": 2, "sequence": 12, "vocabulary": 128},
            {"tensor": 2, "stages": 2, "replicas": 2, "microbatch": 1, "batch": 10},
            {"flops": 8000, "nvlink": 2000, "network": 500},
        ),
        {"compute": 11.52, "tensor": 1.56, "messages": 0.48, "bubble": 1.536, "gradients": 0.904, "total": 16.0},
    ),
)
TWISTS = (
    Twist("gpus", "`plan` has the number of all GPUs, `gpus`, in place of `replicas`", given={1: GPUS}, about="plan"),
    Twist(
        "bits",
        "`network` is in bits per second; `nvlink` is in bytes per second as before",
        given={2: at("network", scaled(8))},
    ),
    Twist("tokens", "`batch` counts the tokens of a step, and not its samples", given={1: TOKENS}, about="plan"),
    Twist(
        "fp32",
        "the gradients travel between the replicas as FP32, with 4 bytes each; activations still have 2 bytes",
        result=FP32,
        about="result",
    ),
    Twist(
        "microbatches",
        "`plan` has the microbatches of one replica, `microbatches`, in place of `batch`",
        given={1: MICROBATCHES},
        about="plan",
    ),
    Twist("peak", "`flops` is the peak of a GPU, and the matrix products reach one half of it", given={2: at("flops", scaled(2))}),
    Twist(
        "layers-of-a-stage",
        "`layers` is the number of layers of one stage, and not of the whole model",
        given={0: STAGE_LAYERS},
    ),
    Twist(
        "shares",
        "the function returns every part as a share of the total, and `total` in seconds",
        result=SHARES,
        about="result",
    ),
)
