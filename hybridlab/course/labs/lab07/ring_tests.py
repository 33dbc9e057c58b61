"""The coding task ('build') of lab 7 in which a student writes a test of a ring all-reduce.

This file has the rings that the student's test must judge, the known mistakes and the changes of the task ('twists'). Some rings are right.
Each of the other rings has a planted fault, and some of these faults show only on some inputs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import short_repr
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.checking import Feedback, right, wrong
from hybridlab.course.checking.maps import FunctionMap, Map, each_number, of_value, scaled
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.course.published import published_ring
from hybridlab.errors import HybridLabError

MOST_RANKS, MOST_NUMBERS = 64, 4096  # the largest array that a ring takes; a test of a ring needs much smaller ones
TRIED = "try D from 1 to 5 and n from 1 to 8"
Ring = Callable[[Floats], Any]  # values (D, n) -> averages (D, n)


def every_rank(row: Floats, ranks: int) -> Floats:
    """Return an array with a copy of the row for each rank, shape (ranks, n)."""
    return np.repeat(row[None, :], ranks, axis=0)


def right_ring(values: Floats) -> Floats:
    """Return the mean over the ranks, with one row for each rank, shape (D, n)."""
    return every_rank(values.mean(axis=0), len(values))


def added_in_order(values: Floats) -> Floats:
    """Return the right averages. Chunk c is added up in the order in which a ring adds it up: rank c first, then rank c + 1."""
    ranks = len(values)
    chunks = [np.roll(part, -chunk, axis=0).cumsum(axis=0)[-1] for chunk, part in enumerate(np.array_split(values, ranks, axis=1))]
    return every_rank(np.concatenate(chunks) / ranks, ranks)


@dataclass(frozen=True)
class Call:
    """One call of a ring: its argument, the right averages, and the numbers that were drawn for the ring.

    Parameters
    ----------
    values : array (D, n)
        The argument of the call.
    averages : array (D, n)
        The right averages. They are added up in an order that was drawn for the ring, so rings differ in the last digits.
    place : int
        The D, the n, the rank or the column at which the ring is wrong.
    amount : float
        By how much some wrong averages differ from the right ones; between 0.1 and 0.9.
    """

    values: Floats
    averages: Floats
    place: int
    amount: float

    def wrong_where(self, wrong: Any) -> Floats:
        """Return the averages with the amount added where ``wrong`` is true. ``wrong`` is one truth value, or an array that fits."""
        return self.averages + self.amount * np.asarray(wrong)


def _without_the_last(call: Call) -> Floats:
    """Return averages that lack one hop of the ring: chunk c lacks the numbers of rank c - 1."""
    return _with_shares_of(call, -1, -1)


def _with_the_first_twice(call: Call) -> Floats:
    """Return averages in which the numbers of rank c are counted twice in chunk c."""
    return _with_shares_of(call, 0, 1)


def _with_shares_of(call: Call, shift: int, sign: int) -> Floats:
    """Return averages to which the share of rank c + ``shift`` is added once more in chunk c, or taken away. They are right for D = 1."""
    ranks, size = call.values.shape
    if ranks == 1:
        return call.averages
    chunk_of = np.concatenate([np.full(len(part), chunk) for chunk, part in enumerate(np.array_split(np.arange(size), ranks))])
    share: Floats = call.values[(chunk_of + shift) % ranks, np.arange(size)] / ranks
    return call.averages + sign * share


def _published(call: Call) -> Floats:
    ranks, size = call.values.shape
    padded = np.pad(call.values, ((0, 0), (0, -size % ranks)))
    return published_ring(padded, "FP32").values[:, :size].astype(np.float64)


def _of_rank_0(call: Call) -> Floats:
    return np.concatenate([call.averages[:1], call.values[1:]])


def _with_a_rest_left_out(call: Call) -> Floats:
    ranks, size = call.values.shape
    return np.where(np.arange(size) < size - size % ranks, call.averages, call.values)


def _in_place(call: Call) -> Floats:
    call.values[:] = call.averages
    return call.averages


def _by_neighbours(call: Call) -> Floats:
    return (call.values + np.roll(call.values, -1, axis=0)) / 2


def _of_all_but_one_rank(call: Call) -> Floats:
    result = call.averages.copy()
    result[-2:-1] = call.values[-2:-1]
    return result


def _for_powers_of_two(call: Call) -> Floats:
    ranks = len(call.values)
    return call.averages if ranks & (ranks - 1) == 0 else _by_neighbours(call)


RIGHT: Mapping[str, Callable[[Call], Any]] = MappingProxyType(
    {
        "a right ring": lambda call: right_ring(call.values),
        "a right ring that adds up around the ring": lambda call: added_in_order(call.values),
        "a right ring that adds up in another order": lambda call: call.averages,
        "a right ring that multiplies by 1 / D": lambda call: every_rank(
            call.values[::-1].sum(axis=0) * (1 / len(call.values)), len(call.values)
        ),
    }
)
# Faults that show only for some sizes come last. The faults before them show which properties of a result a test compares.
WRONG: Mapping[str, Callable[[Call], Any]] = MappingProxyType(
    {
        "a ring that returns nothing but zeros": lambda call: np.zeros_like(call.averages),
        "a ring that returns nothing but NaN": lambda call: np.full_like(call.averages, np.nan),
        "a ring without the division by D": lambda call: call.averages * len(call.values),
        "a ring that is right only for D = 2": _by_neighbours,
        "a ring that gives every rank the numbers of rank 0": lambda call: every_rank(call.values[0], len(call.values)),
        "a ring that is right only on rank 0": _of_rank_0,
        "a ring that is wrong only on rank D - 2": _of_all_but_one_rank,
        "a ring whose averages are all too small": lambda call: call.averages - call.amount,
        "a ring whose averages are all too large": lambda call: call.averages + call.amount,
        "a ring that loses the sign of the numbers": lambda call: every_rank(np.abs(call.values).mean(axis=0), len(call.values)),
        "a ring that ends in chunks of the wrong place": lambda call: np.roll(call.averages, 1, axis=1),
        "a ring that returns one row for all ranks": lambda call: call.averages[0],
        "a ring that returns an array of shape (1, D, n)": lambda call: call.averages[None],
        "a ring that is one step short": _without_the_last,
        "a ring that adds a rank's own numbers twice": _with_the_first_twice,
        "the published ring": _published,
        "a ring that returns float32": lambda call: call.averages.astype(np.float32),
        "a ring that rounds to FP32": lambda call: call.averages.astype(np.float32).astype(np.float64),
        "a ring that rounds to FP16": lambda call: call.averages.astype(np.float16).astype(np.float64),
        "a ring that leaves out the last n mod D numbers": _with_a_rest_left_out,
        "a ring that returns NaN where n is less than D": lambda call: (
            call.averages if call.values.shape[1] >= len(call.values) else np.full_like(call.averages, np.nan)
        ),
        "a ring that is right only where D is 1, 2 or 4": _for_powers_of_two,
        "a ring that overwrites its argument": _in_place,
        "a ring that is wrong only for D = 1": lambda call: call.averages if len(call.values) > 1 else np.zeros_like(call.averages),
        "a ring that is wrong only for n = 1": lambda call: call.averages if call.values.shape[1] > 1 else call.values.copy(),
        "a ring that is wrong only for D = {place}": lambda call: call.wrong_where(len(call.values) == call.place),
        "a ring that is wrong only for n = {place}": lambda call: call.wrong_where(call.values.shape[1] == call.place),
        "a ring that is wrong only on rank {place}": lambda call: call.wrong_where(np.arange(len(call.values))[:, None] == call.place),
        "a ring that is wrong only in column {place}": lambda call: call.wrong_where(np.arange(call.values.shape[1]) == call.place),
    }
)
# The places that can be drawn for a fault. For each of them, the fault shows for D from 1 to 5 and n from 1 to 8.
PLACES: Mapping[str, Sequence[int]] = MappingProxyType(
    {
        "a ring that is wrong only for D = {place}": (3, 4, 5),
        "a ring that is wrong only for n = {place}": range(2, 9),
        "a ring that is wrong only on rank {place}": range(5),
        "a ring that is wrong only in column {place}": range(8),
    }
)


def ring_of(name: str, order: int = 0, place: int = 3, amount: float = 0.5) -> Ring:
    """Return the ring of this name, for what was drawn. A student's test cannot see what was drawn.

    ``order`` draws the order in which the ring adds up its ranks; for ``place`` and ``amount`` see :class:`Call`. The ring raises a
    :class:`HybridLabError` for an argument that is not an array of real numbers with two axes, or is too large.
    """
    result_of = {**RIGHT, **WRONG}[name]

    def ring(values: Floats) -> Any:
        _refuse_other_values(values)
        ranks = len(values)
        in_order = values[np.random.default_rng(order).permutation(ranks)]
        averages = every_rank(in_order.cumsum(axis=0)[-1] / ranks, ranks)
        with np.errstate(over="ignore"):  # a large number becomes infinity in FP16: this is the planted fault, so numpy need not warn
            return result_of(Call(values, averages, place, amount))

    return ring


def _refuse_other_values(values: Any) -> None:
    """Raise an error if a ring cannot take these values."""
    wanted = "a ring takes an array of real numbers of shape (D, n), such as np.random.default_rng(0).normal(size=(3, 7))"
    if not isinstance(values, np.ndarray):
        raise HybridLabError(f"{wanted}, not a value of type {type(values).__name__[:40]}", "not-an-array")
    if values.dtype.kind not in "iuf":
        raise HybridLabError(f"{wanted}, not an array of {str(values.dtype)[:40]}", "not-an-array")
    if values.ndim != 2 or not values.size:
        raise HybridLabError(f"{wanted}, not an array of shape {values.shape}: {TRIED}", "another-shape")
    if values.shape[0] > MOST_RANKS or values.shape[1] > MOST_NUMBERS:
        most = f"at most {MOST_RANKS} ranks and {MOST_NUMBERS:,} numbers for each rank"
        raise HybridLabError(f"a ring here takes {most}, not an array of shape {values.shape}: {TRIED}", "too-large")


def rings(rng: np.random.Generator) -> Iterator[Case]:
    """Yield one case for each ring, right rings first. For each ring, the order of its sums, a place and an amount are drawn."""
    for name in (*RIGHT, *WRONG):
        place = int(rng.choice(PLACES.get(name, (0,))))
        drawn = (int(rng.integers(1 << 32)), place, round(float(rng.uniform(0.1, 0.9)), 3))
        yield Case((name, *drawn), name.format(place=place), run=verdict_on)


@dataclass
class Seen:
    """What a student's test has tried on one ring.

    Parameters
    ----------
    calls : int
        The number of calls of the ring.
    equal_rows, other_rows : bool
        Whether an array for several ranks gave all of them the same numbers, and whether an array gave two ranks different numbers.
    inexact : bool
        Whether some result differed from that of numpy.
    shown : str
        The code of the first fault that a call of the ring has shown; empty if the ring was right in all calls.
    """

    calls: int = 0
    equal_rows: bool = False
    other_rows: bool = False
    inexact: bool = False
    shown: str = ""

    def watched(self, ring: Ring) -> Ring:
        """Return a ring that does the same, and whose calls are noted here."""

        def watched_ring(values: Floats) -> Any:
            before = np.array(values)
            found = ring(values)
            self.calls += 1
            differ = bool((before != before[0]).any())
            self.other_rows |= differ
            self.equal_rows |= len(before) > 1 and not differ
            self.inexact |= not np.array_equal(found, right_ring(before))
            self.shown = self.shown or _fault(before, values, np.asarray(found))
            return found

        return watched_ring


def _fault(before: Floats, after: Floats, found: Floats) -> str:
    """Return a code for what is wrong after one call of a ring; empty if nothing is wrong."""
    wanted = right_ring(before)
    if found.shape != wanted.shape:
        return "shape-not-compared"
    if found.dtype != np.float64:
        return "dtype-not-compared"
    if (before != after).any():
        return "argument-not-compared"
    if np.isnan(found).any():
        return "nan-passes"
    if _within(found, wanted):
        return ""
    return "coarse" if np.allclose(found, wanted, rtol=1e-2, atol=1e-2) else "slipped-through"


# For each code, the sentence about a test that returned True, although the ring was wrong in one of its calls.
SLIPPED: Mapping[str, str] = MappingProxyType(
    {
        "slipped-through": "your test returns True, although this ring has a fault, which one of your calls of the ring has shown",
        "shape-not-compared": "your test returns True, although the result has another shape than `values`: compare the shapes, too",
        "dtype-not-compared": "your test returns True, although the result is no float64 array: test the dtype of the result, too",
        "argument-not-compared": "your test returns True, although the ring has changed `values`: compare it with a copy",
        "nan-passes": "your test returns True, although the result has NaN. A comparison with NaN is False, so test that all are close",
        "coarse": "your test allows too large an error; np.allclose, for example, allows 1e-5 of a number by default: "
        "give rtol=0 and atol=1e-9",
    }
)
# For each ring, the code and the sentence if a test returned True because the ring was right in all its calls.
TOO_FEW = ("few-sizes", f"this ring is right for all arrays of your test: {TRIED}")
NOT_SHOWN: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "a ring that is right only for D = 2": ("two-replicas-alone", "the test tries no D above 2: let it try 1 to 5"),
        "a ring that loses the sign of the numbers": ("no-signs", "the test tries no negative numbers"),
        "a ring that leaves out the last n mod D numbers": (
            "whole-chunks-alone",
            "the test tries only n that are divisible by D: let it try other n, too",
        ),
        "a ring that returns NaN where n is less than D": ("no-small-n", "the test tries no n below D: let it try several n, from 1 on"),
        "a ring that is right only where D is 1, 2 or 4": ("powers-of-two-alone", "the test tries only D = 1, 2 and 4: let it try 1 to 5"),
        "a ring that is wrong only for D = 1": ("no-single-rank", "the test does not try D = 1: let it try 1 to 5"),
        "a ring that is wrong only for n = 1": ("no-single-number", "the test does not try n = 1: let it try 1 to 8"),
        "a ring that is wrong only for D = {place}": ("few-ranks", "the test does not try this D: let it try 1 to 5"),
        "a ring that is wrong only for n = {place}": ("few-numbers", "the test does not try this n: let it try 1 to 8"),
    }
)


@dataclass(frozen=True)
class Verdict:
    """The verdict of a test on a ring. Two verdicts are equal if both are True or both are False.

    Parameters
    ----------
    passes : bool
        Whether the test returned True.
    seen : Seen
        What the test has tried on the ring.
    """

    passes: bool
    seen: Seen = field(compare=False)


def judge_verdict(verdict: Verdict, name: str, *drawn: float) -> Feedback:
    """Judge the verdict of a student's test on one ring."""
    if verdict.passes == (name in RIGHT):
        return right()
    if not verdict.passes and verdict.seen.inexact:
        refused = "your test returns False, although this ring is right"
        return wrong("exactly-equal", f"{refused}: numpy adds up in another order, so the last digits differ; allow an error of 1e-9")
    if not verdict.passes:
        return wrong("right-ring-refused", "your test returns False, although this ring is right")
    seen = verdict.seen
    if not seen.calls:
        return wrong("ring-not-called", "your test returns True, although this ring has a fault: it has not called the ring")
    if seen.shown:
        return wrong(seen.shown, SLIPPED[seen.shown])
    if seen.equal_rows and not seen.other_rows:
        return wrong("equal-rows", "the test gives all ranks the same numbers: give each rank other numbers")
    return wrong(*NOT_SHOWN.get(name, TOO_FEW))


def verdict_on(call: Callable[..., Any], name: str, order: int, place: int, amount: float) -> tuple[Any, Seen]:
    """Return the result of a student's test for one ring, and what the test has tried."""
    seen = Seen()
    try:
        return call(seen.watched(ring_of(name, order, place, amount))), seen
    except HybridLabError as why:
        if why.code == "raises" and "AssertionError" in str(why):
            raise HybridLabError(f"{why}: return False in place of it", "asserts") from None
        raise


def read_verdict(returned: tuple[Any, Seen] | bool) -> Verdict:
    """Return the verdict of a student's test, or raise an error if it is neither True nor False. A known mistake has a verdict alone."""
    verdict, seen = returned if isinstance(returned, tuple) else (returned, Seen())
    if verdict is None:
        raise HybridLabError("the function returns None: does it end in return?", "returns-nothing")
    if not isinstance(verdict, (bool, np.bool_)):
        raise HybridLabError(f"the function returns True or False, not {short_repr(verdict)}", "not-true-or-false")
    return Verdict(bool(verdict), seen)


def _within(found: Any, wanted: Floats) -> bool:
    return bool(np.allclose(found, wanted, rtol=0, atol=1e-9))


def _tests(good: Callable[[Any, Floats], Any]) -> Iterator[Callable[..., bool]]:
    """Yield wrong tests that compare the averages of a ring with the right ones by ``good``: on one array, and on arrays of all sizes."""
    for shapes in ([(3, 7)], [(4, 8)], list(product(range(1, 6), range(1, 9)))):
        given = [np.random.default_rng(shape).normal(size=shape) for shape in shapes]

        def passes(*drawn: Any, given: Sequence[Floats] = given) -> bool:
            ring = ring_of(*drawn)
            return all(bool(good(np.asarray(ring(values.copy())), right_ring(values))) for values in given)

        yield passes


def _mistakes(code: str, sentence: str, *goods: Callable[[Any, Floats], Any]) -> list[KnownMistake]:
    """Return the same mistake in several programs, which compare by one of ``goods`` and try arrays of different sizes."""
    return [KnownMistake(code, sentence, result) for good in goods for result in _tests(good)]


MISTAKES = [
    KnownMistake(
        "passes-everything",
        "the test passes every ring: let it compare the result with one that numpy computes",
        lambda *drawn: True,
    ),
    KnownMistake("passes-nothing", "the test fails every ring, also the right rings", lambda *drawn: False),
    KnownMistake(
        "inverted",
        "the test returns False for the right rings and True for wrong ones",
        lambda name, *drawn: name not in RIGHT,
        under={"true-for-a-fault": "the test returns True for the right rings and False for wrong ones: here True is for a fault"},
    ),
    *_mistakes(
        "replicas-alone",
        "the test compares the replicas with each other alone: they can agree on wrong numbers",
        lambda found, wanted: (found == found[0]).all(),
    ),
    *_mistakes(
        "rank-0-alone",
        "the test looks at rank 0 alone: compare all ranks",
        *[lambda found, wanted, close=close: close(found.flat[: wanted.shape[1]], wanted[0]) for close in (_within, np.allclose)],
    ),
    *_mistakes(
        "last-rank-alone",
        "the test does not look at every rank: compare the numbers of all ranks",
        *[lambda found, wanted, close=close: close(found[-1], wanted[0]) for close in (_within, np.allclose)],
    ),
    *_mistakes(
        "no-abs",
        "an error below 0 passes this test: compare the absolute error, abs(found - wanted)",
        lambda found, wanted: (found - wanted).max() <= 1e-9,
        lambda found, wanted: (wanted - found).max() <= 1e-9,
    ),
]


def _weights(values: Floats) -> Floats:
    """Return the weight r + 1 of each rank r, shape (ranks, 1)."""
    return np.arange(1.0, len(values) + 1)[:, None]


def _without_last_axis(values: Floats) -> Floats:
    if np.ndim(values) != 3 or values.shape[-1] != 1:
        raise HybridLabError(f"in your task a ring takes an array of shape (D, n, 1), not {np.shape(values)}: {TRIED}", "another-shape")
    return values[..., 0]


RATE = 0.3  # the learning rate of the lab
SUMS = each_number(lambda value, case: value * len(case[0]), lambda value, case: value / len(case[0]))  # turns means into sums
WEIGHTED = of_value(
    lambda values: values / _weights(values) * _weights(values).mean(), lambda values: values * _weights(values) / _weights(values).mean()
)
MATRICES = of_value(lambda values: values[..., None], lambda values: _without_last_axis(values))
OPPOSITE = of_value(*[lambda verdict: not verdict if isinstance(verdict, (bool, np.bool_)) else verdict] * 2)

EXAMPLES = (
    Example((np.array([[2.0, 3.0], [1.0, 3.0], [3.0, 6.0]]),), np.array([[2.0, 4.0]] * 3), of=0, name="right_ring"),
    Example((right_ring,), True),
)
TWISTS = (
    Twist(
        "sum",
        "a right ring adds up: every row is the sum over the ranks, not the mean",
        given={0: FunctionMap(result=SUMS)},
        about="numbers",
    ),
    Twist(
        "weighted-mean",
        "every row of a right ring is the weighted mean of the ranks, where rank r has the weight r + 1",
        given={0: FunctionMap(given={0: WEIGHTED})},
        about="numbers",
    ),
    Twist(
        "steps",
        f"a right ring returns the change of the weights: every row is -{RATE} times the mean over the ranks",
        given={0: FunctionMap(result=scaled(-RATE))},
        about="numbers",
    ),
    Twist(
        "matrices",
        "each rank has a matrix with one column: `values` and the result of a right ring have shape (D, n, 1)",
        given={0: FunctionMap(given={0: MATRICES}, result=MATRICES)},
    ),
    Twist(
        "with-messages",
        "a ring returns (array, messages), and your test judges the array alone: the messages of each rank are only counted",
        given={0: FunctionMap(result=Map(lambda averages, case: (averages, 2 * (len(case[0]) - 1)), lambda both, case: both[0]))},
    ),
    Twist("true-for-a-fault", "the function returns True if the ring has a fault, and False if it is right", result=OPPOSITE),
)
