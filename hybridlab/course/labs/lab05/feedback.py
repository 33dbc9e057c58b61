"""The coding task ("build") ``with_feedback`` of lab 5: gradients to try, known mistakes, and changes of the task ("twists")."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.maps import REVERSED, at, scaled, taken_from
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.course.labs.lab05.messages import (
    BOTH_REVERSED,
    LOSS_SCALE,
    OTHER_FIRST,
    Encoded,
    array,
    in_blocks,
    pair,
    sizes_of_messages,
    through_int8,
)
from hybridlab.errors import HybridLabError

Step = Callable[[Floats, Floats, int], Encoded]  # gradient, residual, block -> what is sent, the new residual
STEPS = 200


def gradients(rng: np.random.Generator) -> Iterator[Case]:
    """Yield gradients and residuals of many sizes, then one gradient that is sent in many steps."""
    yield Case((np.array([2.54, 0.013]), np.zeros(2), 2), "the gradient [2.54, 0.013] and no residual, in one block")
    yield Case((np.array([2.54, 0.013]), np.array([0.0, 0.009]), 2), "the gradient [2.54, 0.013] and the residual [0, 0.009], in one block")
    yield Case((np.zeros(3), np.zeros(3), 2), "3 zeros in blocks of 2, and no residual")
    for size, block in sizes_of_messages(rng)[2:]:  # in a block with one number the residual is a rounding error of the scale alone
        gradient, residual = rng.standard_normal(size), rng.standard_normal(size) / 100
        yield Case((gradient, residual, block), f"{in_blocks(size, block)}, and a residual")
    yield Case((np.zeros(5), rng.standard_normal(5), 4), "5 zeros in blocks of 4, and a residual")
    words = f"{STEPS} steps with the same 50 numbers in blocks of 16"
    yield Case((rng.standard_normal(50), np.zeros(50), 16, STEPS), words, run=_many_steps)


class Average(NamedTuple):
    """The mean of the values that a student's function sends in many steps with the same gradient."""

    sent: Floats


def _many_steps(function: Callable[..., Any], gradient: Floats, residual: Floats, block: int, steps: int) -> Average:
    total = np.zeros_like(gradient)
    for _ in range(steps):
        sent, residual = sent_and_left(function(gradient.copy(), residual.copy(), block))
        for name, found in (("the values that are sent", sent), ("the residuals", residual)):
            if found.shape != gradient.shape:
                raise HybridLabError(f"{name} have shape {found.shape}, and the gradient has {gradient.shape}", "wrong-shape")
        total += sent
    return Average(total / steps)


def sent_and_left(result: Any) -> Encoded:
    """Return the sent values and the new residual from a student's result, or raise an error if their types are wrong."""
    sent, left = pair(result, "what is sent and the new residual")
    codes = ": these are codes; return what they decode to" if getattr(sent, "dtype", None) == np.int8 else ""
    return array(sent, "the values that are sent", np.float64, codes), array(left, "the residuals", np.float64)


def step_or_average(result: Any) -> Encoded | Average:
    """Return a student's result of one step, or the mean of many steps. Raise an error if a type is wrong."""
    return result if isinstance(result, Average) else sent_and_left(result)


def _sent_and_rest(wanted: Floats, sent: Floats) -> Encoded:
    """Return the sent values and the new residual: the wanted values minus the sent values."""
    return sent, wanted - sent


def _mistake(code: str, sentence: str, step: Step, under: Mapping[str, str | None] | None = None) -> KnownMistake:
    """Return a known mistake. ``step`` is its program for one step, which is repeated in the case with many steps."""

    def result(gradient: Floats, residual: Floats, block: int, steps: int = 1) -> Encoded | Average:
        return step(gradient, residual, block) if steps == 1 else _many_steps(step, gradient, residual, block, steps)

    return KnownMistake(code, sentence, result, under or {})


HALVES = ("half-of-the-residual", "doubled-residual")  # the twists under which half of the old residual is added to the gradient
MISTAKES = (
    _mistake(
        "residual-not-added",
        "the old residual is lost: add it to the gradient before you encode",
        lambda gradient, residual, block: (sent := through_int8(gradient, block), gradient - sent),
        under={
            "sent-too-much": "the old residual is lost: subtract it from the gradient before you encode",
            **dict.fromkeys(HALVES, "the old residual is lost: add half of it to the gradient before you encode"),
        },
    ),
    _mistake(
        "old-residual-left-out",
        "your new residual lacks the old one: subtract what was sent from the gradient and the old residual together",
        lambda gradient, residual, block: (sent := through_int8(gradient + residual, block), gradient - sent),
        under={
            "sent-too-much": "your new residual lacks the old one: it is what was sent minus (gradient minus old residual)",
            **dict.fromkeys(HALVES, "your new residual lacks half of the old one: this half belongs to what should have been sent"),
        },
    ),
    _mistake(
        "sign",
        "the new residual has the wrong sign: it is what should have been sent minus what was sent",
        lambda gradient, residual, block: (sent := through_int8(gradient + residual, block), sent - gradient - residual),
        under={
            "sent-too-much": "the new residual has the wrong sign: it is what was sent minus what should have been sent",
            "doubled-residual": "the new residual has the wrong sign: it is twice what should have been sent, minus twice what was sent",
        },
    ),
    _mistake(
        "residual-subtracted",
        "you subtract the old residual: it was not sent yet, so add it to the gradient",
        lambda gradient, residual, block: (sent := through_int8(gradient - residual, block), gradient - residual - sent),
        under={
            "sent-too-much": "you add the old residual: it was sent too much, so subtract it from the gradient",
            **dict.fromkeys(HALVES, "you subtract half of the old residual: it was not sent yet, so add half of it to the gradient"),
        },
    ),
    _mistake(
        "residual-is-gradient",
        "your new residual contains what was sent: it is only what rounding has left, so subtract what was sent",
        lambda gradient, residual, block: (through_int8(gradient + residual, block), gradient + residual),
        under={
            "sent-too-much": "your new residual lacks what was sent: it is what was sent minus what should have been sent",
            "doubled-residual": "your new residual contains what was sent: it is twice what rounding has left, so subtract what was sent",
        },
    ),
    _mistake(
        "counted-twice",
        "you count the old residual twice: it is in the sum already, so do not add it to the new residual",
        lambda gradient, residual, block: (sent := through_int8(gradient + residual, block), gradient + 2 * residual - sent),
        under={
            "sent-too-much": "you count the old residual twice: it is in the difference already, so do not add it to the new residual",
            **dict.fromkeys(
                HALVES, "you count the old residual twice: half of it is in the sum already, so do not add it to the new residual"
            ),
        },
    ),
    _mistake(
        "no-residual",
        "your new residual is always 0: it must hold what rounding has left",
        lambda gradient, residual, block: (through_int8(gradient + residual, block), np.zeros(len(gradient))),
        under={"sent-too-much": "your new residual is always 0: it must hold what rounding has added"},
    ),
    _mistake(
        "swapped",
        "the two results are swapped: return first what is sent, then the new residual",
        lambda gradient, residual, block: (gradient + residual - (sent := through_int8(gradient + residual, block)), sent),
        under={"residual-first": None},
    ),
    _mistake(
        "one-scale",
        "your function has one scale for the whole message: give `block` to encode and decode",
        lambda gradient, residual, block: _sent_and_rest(gradient + residual, through_int8(gradient + residual, max(len(gradient), 1))),
    ),
    _mistake(
        "residual-never-sent",
        "only the gradient is encoded, so the residual grows and is never sent: encode the sum of both",
        lambda gradient, residual, block: _sent_and_rest(gradient + residual, through_int8(gradient, block)),
        under={
            "sent-too-much": "only the gradient is encoded, so the residual grows: encode the gradient minus the residual",
            **dict.fromkeys(HALVES, "only the gradient is encoded, so the residual is never sent: encode the gradient plus half of it"),
        },
    ),
    _mistake(
        "encoded-separately",
        "the gradient and the residual are encoded separately, with two roundings: encode their sum once",
        lambda gradient, residual, block: _sent_and_rest(
            gradient + residual, through_int8(gradient, block) + through_int8(residual, block)
        ),
        under={
            "sent-too-much": "the gradient and the residual are encoded separately, with two roundings: encode their difference once",
            **dict.fromkeys(
                HALVES, "the gradient and half of the residual are encoded separately, with two roundings: encode their sum once"
            ),
        },
    ),
    _mistake(
        "not-rounded",
        "you send the sum without rounding: encode the sum, and send the decoded numbers",
        lambda gradient, residual, block: _sent_and_rest(gradient + residual, gradient + residual),
        under={"sent-too-much": "you send the difference without rounding: encode the difference, and send the decoded numbers"},
    ),
)

EXAMPLES = (
    Example(
        (np.array([126.5, 0.75, 63.25]), np.array([0.5, -0.5, 0.25]), 2),
        (np.array([127.0, 0.0, 63.5]), np.array([0.0, 0.25, 0.0])),
    ),
)
NEGATIVE = taken_from(lambda case: 0)  # 0 - x, because -1 * 0.0 would be -0.0
TWISTS = (
    Twist(
        "sent-too-much",
        "a residual is what was sent too much: what is decoded minus the new residual equals the gradient minus the old one",
        given={1: NEGATIVE},
        result=at(1, NEGATIVE),
        about="residual",
    ),
    Twist(
        "half-of-the-residual",
        "half of the old residual is added: what is decoded plus the new residual equals the gradient plus residual / 2",
        given={1: scaled(2)},
        about="residual",
    ),
    Twist(
        "doubled-residual",
        "a residual, given or returned, is twice the part that the rounding removed",
        given={1: scaled(2)},
        result=at(1, scaled(2)),
        about="residual",
    ),
    Twist(
        "loss-scale",
        f"`gradient` has been multiplied by a loss scale of {LOSS_SCALE}; the residuals and what is sent are without it",
        given={0: scaled(LOSS_SCALE)},
    ),
    Twist(
        "short-block-first",
        "the first block is the shorter one, not the last, if n is no multiple of block",
        given={0: REVERSED, 1: REVERSED},
        result=BOTH_REVERSED,
    ),
    Twist("residual-first", "the function returns the new residual first, then what the receiver decodes", result=OTHER_FIRST),
)
