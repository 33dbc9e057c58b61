"""The twists of the build of lab 13: other directions, letters and lines, and other forms of the latency and of the cap."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from hybridlab.course.checking.answers import Orders
from hybridlab.course.labs.lab13.automatic import Model, changed_models, read_order_of_model
from hybridlab.course.checking.twists import Function, Twist
from hybridlab.course.checking.legacy import in_words_of_the_page, show_changes, together
from hybridlab.schedule import Kind, Op

GIGABYTES = 3  # of one activation
OTHER = {Kind.I: Kind.W, Kind.W: Kind.I}

Lines = list[list[str]]


def _texts_of(orders: Orders) -> Lines:
    return [[str(op) for op in order] for order in orders]


def _other_forms(
    lines: Callable[[Orders], Lines] = _texts_of,
    latency: Callable[[Any], Any] = lambda latency: latency,
    cap: Callable[[Any, int], Any] = lambda cap, devices: cap,
    from_the_last: bool = False,
) -> Callable[[Function], Function]:
    """Return a ``standard`` that changes the lines of a result, the latency and the cap, and the end from which devices are counted."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def zero_bubble(devices: int, microbatches: int, *given: Any) -> Any:
            *times, own_latency, own_cap = given
            passed_on = [each[::-1] if from_the_last else each for each in times]
            before = [each[:] for each in passed_on]
            result = function(devices, microbatches, *passed_on, latency(own_latency), cap(own_cap, devices))
            if from_the_last:
                for argument, own, old in zip(times, passed_on, before, strict=True):
                    show_changes(argument, own, old, lambda changed: changed[::-1])
            return in_words_of_the_page(result, read_order_of_model, lines)

        return zero_bubble

    return standard


def _stages_other_way(orders: Orders) -> Lines:
    last = len(orders) - 1
    return [[str(op._replace(stage=last - op.stage) if op.stage <= last else op) for op in order] for order in reversed(orders)]


def _other_letters(orders: Orders) -> Lines:
    return [[str(op._replace(kind=OTHER.get(op.kind, op.kind))) for op in order] for order in orders]


def _microbatch_last(orders: Orders) -> Lines:
    return [[str(Op(op.kind, op.microbatch, op.stage)) for op in order] for order in orders]


def _both_latencies(latency: Any) -> Any:
    return (latency, latency) if isinstance(latency, (int, float)) else tuple(latency)


def _two_latencies(model: Model) -> Model:
    *first, latency, cap = model
    return (*first, (max(latency - 2, 0), latency + 2), cap)


def _caps(cap: Any, devices: int) -> list[int]:
    return list(cap) if isinstance(cap, Sequence) else [cap] * devices


def _a_cap_each(model: Model) -> Model:
    """Return a model in which every second device has room for one activation more."""
    *first, cap = model
    return (*first, [cap + device % 2 for device in range(model[0])])


LAST_STAGE_FIRST = Twist(
    "last-stage-first",
    "forwards go from stage K-1 down to stage 0, and gradients come back from stage 0 up to stage K-1",
    _other_forms(_stages_other_way, from_the_last=True),
)
REVERSED_LINES = Twist("reversed-lines", "line d has the operations of stage K-1-d", _other_forms(lambda orders: _texts_of(orders[::-1])))
OTHER_LETTERS = Twist(
    "other-letters",
    "the letters are exchanged: 2W0 is the input gradient of microbatch 0 on stage 2, and 2I0 its weight gradient",
    _other_forms(_other_letters),
)
MICROBATCH_FIRST = Twist(
    "microbatch-first",
    "an operation is written microbatch, letter, stage: 3F0 is the forward of microbatch 3 on stage 0",
    _other_forms(_microbatch_last),
)
IN_GIGABYTES = Twist(
    "gigabytes",
    f"an activation takes {GIGABYTES} GB, and `cap` is the memory of each device in GB",
    _other_forms(cap=lambda cap, devices: GIGABYTES * cap),
)
CAP_EACH = Twist(
    "caps",
    "`cap` is a list with one number for each device",
    _other_forms(cap=_caps),
    {"cases": changed_models(_a_cap_each)},
)
LATENCIES = Twist(
    "two-latencies",
    "`C` is a pair: the latency of messages to the next stage, and that of messages to the stage before",
    _other_forms(latency=_both_latencies),
    {"cases": changed_models(_two_latencies)},
)

AUTOMATIC_TWISTS = (
    LAST_STAGE_FIRST,
    CAP_EACH,
    OTHER_LETTERS,
    LATENCIES,
    REVERSED_LINES,
    together(LAST_STAGE_FIRST, IN_GIGABYTES),
    MICROBATCH_FIRST,
    together(OTHER_LETTERS, CAP_EACH),
    IN_GIGABYTES,
    together(REVERSED_LINES, LATENCIES),
)
