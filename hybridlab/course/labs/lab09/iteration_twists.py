"""The twists of lab 9's build: the plan and the rates are given in another way, or the times are returned in another way."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from hybridlab.course.labs.lab09.iteration_parts import NAMES, Numbers, read_parts
from hybridlab.course.checking.twists import Function, Twist
from hybridlab.course.checking.legacy import in_words_of_the_page, together

Given = tuple[Numbers, Numbers, Numbers]
CHANGED = "changed by the function"  # a key that shows the judge a change to a renamed argument


def _with_given(
    given: Callable[[Numbers, Numbers, Numbers], Given] = lambda model, plan, rates: (model, plan, rates),
    on_the_page: Callable[[Numbers], Numbers] = lambda parts: parts,
) -> Callable[[Function], Function]:
    """Return a ``standard`` with functions for the arguments that the function gets, and for the parts that it returns."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def iteration_time(model: Numbers, plan: Numbers, rates: Numbers) -> Any:
            page = model, plan, rates
            renamed = given(dict(model), dict(plan), dict(rates))
            before = [dict(each) for each in renamed]
            result = function(*renamed)
            for argument, passed_on, old in zip(page, renamed, before, strict=True):
                if passed_on != old:
                    argument[CHANGED] = 1
            return in_words_of_the_page(result, read_parts, on_the_page)

        return iteration_time

    return standard


def _all_but(given: Numbers, name: str) -> Numbers:
    return {key: value for key, value in given.items() if key != name}


def _gpus(model: Numbers, plan: Numbers, rates: Numbers) -> Given:
    gpus = plan["tensor"] * plan["stages"] * plan["replicas"]
    return model, _all_but(plan, "replicas") | {"gpus": gpus}, rates


def _microbatches(model: Numbers, plan: Numbers, rates: Numbers) -> Given:
    count = plan["batch"] // (plan["replicas"] * plan["microbatch"])
    return model, _all_but(plan, "batch") | {"microbatches": count}, rates


def _seconds(parts: Numbers) -> Numbers:
    total = parts["total"]
    return {name: parts[name] if name == "total" else parts[name] * total for name in NAMES}


def _as_fp16(parts: Numbers) -> Numbers:
    half = parts["gradients"] / 2
    return parts | {"gradients": half, "total": parts["total"] - half}


GPUS = Twist("gpus", "`plan` has the number of all GPUs, `gpus`, in place of `replicas`", _with_given(_gpus))
MICROBATCHES = Twist(
    "microbatches",
    "`plan` has the microbatches of one replica, `microbatches`, in place of `batch`",
    _with_given(_microbatches),
)
TOKENS = Twist(
    "tokens",
    "`batch` counts the tokens of a step, and not its samples",
    _with_given(lambda model, plan, rates: (model, plan | {"batch": plan["batch"] * model["sequence"]}, rates)),
)
BITS = Twist(
    "bits",
    "`network` is in bits per second; `nvlink` is in bytes per second as before",
    _with_given(lambda model, plan, rates: (model, plan, rates | {"network": 8 * rates["network"]})),
)
PEAK = Twist(
    "peak",
    "`flops` is the peak of a GPU, and the matrix products reach one half of it",
    _with_given(lambda model, plan, rates: (model, plan, rates | {"flops": 2 * rates["flops"]})),
)
STAGE_LAYERS = Twist(
    "layers-of-a-stage",
    "`layers` is the number of layers of one stage, and not of the whole model",
    _with_given(lambda model, plan, rates: (model | {"layers": model["layers"] // plan["stages"]}, plan, rates)),
)
FP32 = Twist(
    "fp32",
    "the gradients travel between the replicas as FP32, with 4 bytes each; activations still have 2 bytes",
    _with_given(on_the_page=_as_fp16),
)
SHARES = Twist(
    "shares",
    "the function returns every part as a share of the total, and `total` in seconds",
    _with_given(on_the_page=_seconds),
)

ITERATION_TWISTS = (
    GPUS,
    together(BITS, SHARES),
    TOKENS,
    together(FP32, STAGE_LAYERS),
    MICROBATCHES,
    together(PEAK, SHARES),
    STAGE_LAYERS,
    together(GPUS, FP32),
    BITS,
)
