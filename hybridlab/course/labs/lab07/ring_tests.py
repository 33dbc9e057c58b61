"""The coding task ('build') of lab 7 in which a student writes a test of a ring all-reduce.

This file has the rings that the student's test must judge, the known mistakes and the changes of the task ('twists'). Some rings are right.
Each of the other rings has a planted fault, and some of these faults show only on some inputs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import short_repr
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.maps import FunctionMap, Map, each_number, of_value, scaled
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.course.published import published_ring
from hybridlab.errors import HybridLabError

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


def _without_the_last(values: Floats) -> Floats:
    """Return averages that lack one hop of the ring: chunk c lacks the numbers of rank c - 1."""
    ranks, mean = len(values), values.mean(axis=0)
    parts = zip(np.array_split(values, ranks, axis=1), np.array_split(mean, ranks), strict=True)
    chunks = [part_mean - (part[chunk - 1] / ranks if ranks > 1 else 0) for chunk, (part, part_mean) in enumerate(parts)]
    return every_rank(np.concatenate(chunks), ranks)


def _with_the_first_twice(values: Floats) -> Floats:
    """Return averages in which the numbers of rank c are counted twice in chunk c."""
    ranks = len(values)
    parts = enumerate(np.array_split(values, ranks, axis=1))
    return every_rank(np.concatenate([(part.sum(axis=0) + (part[chunk] if ranks > 1 else 0)) / ranks for chunk, part in parts]), ranks)


def _published(values: Floats) -> Floats:
    ranks, size = values.shape
    padded = np.pad(values, ((0, 0), (0, -size % ranks)))
    return published_ring(padded, "FP32").values[:, :size].astype(np.float64)


def _of_rank_0(values: Floats) -> Floats:
    result = values.copy()
    result[0] = values.mean(axis=0)
    return result


def _with_a_rest_left_out(values: Floats) -> Floats:
    ranks, size = values.shape
    result = every_rank(values.mean(axis=0), ranks)
    rest = size - size % ranks
    result[:, rest:] = values[:, rest:]
    return result


def _in_place(values: Floats) -> Floats:
    values[:] = values.mean(axis=0)
    return values.copy()


def _without_numbers(values: Floats) -> Floats:
    ranks, size = values.shape
    return every_rank(values.mean(axis=0) if size >= ranks else np.full(size, np.nan), ranks)


def _by_neighbours(values: Floats) -> Floats:
    return (values + np.roll(values, -1, axis=0)) / 2


def _of_all_but_one_rank(values: Floats) -> Floats:
    result = every_rank(values.mean(axis=0), len(values))
    result[-2:-1] = values[-2:-1]
    return result


def _for_powers_of_two(values: Floats) -> Floats:
    ranks = len(values)
    return added_in_order(values) if ranks & (ranks - 1) == 0 else _by_neighbours(values)


def _right_but_for_one_rank(values: Floats) -> Floats:
    return added_in_order(values) if len(values) > 1 else np.zeros_like(values)


def _right_but_for_one_number(values: Floats) -> Floats:
    return added_in_order(values) if values.shape[1] > 1 else values.copy()


def _with_chunks_shifted(values: Floats) -> Floats:
    return every_rank(np.roll(values.mean(axis=0), 1), len(values))


RIGHT: Mapping[str, Ring] = MappingProxyType(
    {
        "a right ring": right_ring,
        "a right ring that adds up around the ring": added_in_order,
        "a right ring that multiplies by 1 / D": lambda values: every_rank(values[::-1].sum(axis=0) * (1 / len(values)), len(values)),
    }
)
# Faults that show only for some sizes come last. The faults before them show which properties of a result a test compares.
WRONG: Mapping[str, Ring] = MappingProxyType(
    {
        "a ring that returns nothing but zeros": np.zeros_like,
        "a ring that returns nothing but NaN": lambda values: np.full_like(values, np.nan),
        "a ring without the division by D": lambda values: every_rank(values.sum(axis=0), len(values)),
        "a ring that is right only for D = 2": _by_neighbours,
        "a ring that gives every rank the numbers of rank 0": lambda values: every_rank(values[0], len(values)),
        "a ring that is right only on rank 0": _of_rank_0,
        "a ring that is wrong only on rank D - 2": _of_all_but_one_rank,
        "a ring whose averages are all too small": lambda values: added_in_order(values) - 0.5,
        "a ring whose averages are all too large": lambda values: added_in_order(values) + 0.5,
        "a ring that loses the sign of the numbers": lambda values: every_rank(np.abs(values).mean(axis=0), len(values)),
        "a ring that ends in chunks of the wrong place": _with_chunks_shifted,
        "a ring that returns one row for all ranks": lambda values: values.mean(axis=0),
        "a ring that is one step short": _without_the_last,
        "a ring that adds a rank's own numbers twice": _with_the_first_twice,
        "the published ring": _published,
        "a ring that returns float32": lambda values: added_in_order(values).astype(np.float32),
        "a ring that rounds to FP32": lambda values: added_in_order(values).astype(np.float32).astype(np.float64),
        "a ring that rounds to FP16": lambda values: added_in_order(values).astype(np.float16).astype(np.float64),
        "a ring that leaves out the last n mod D numbers": _with_a_rest_left_out,
        "a ring that returns NaN where n is less than D": _without_numbers,
        "a ring that is right only where D is 1, 2 or 4": _for_powers_of_two,
        "a ring that overwrites its argument": _in_place,
        "a ring that is wrong only for D = 1": _right_but_for_one_rank,
        "a ring that is wrong only for n = 1": _right_but_for_one_number,
    }
)
WRONG_FOR = "a ring that is wrong only for D = {size}"  # a grader's seed draws the size


def ring_of(name: str, size: int) -> Ring:
    """Return the ring of this name. A student's test cannot see the name. ``size`` is the D of ``WRONG_FOR``."""
    known = {**RIGHT, **WRONG}.get(name)

    def ring(values: Floats) -> Any:
        if known is not None:
            with np.errstate(over="ignore"):  # a large number becomes infinity in FP16: this is the planted fault, so numpy need not warn
                return known(values)
        return _by_neighbours(values) if len(values) == size else added_in_order(values)

    return ring


def rings_in_turn(rng: np.random.Generator) -> Iterator[Case]:
    """Yield one case for each ring, with this ring and all rings before it.

    A known mistake is recognised only if it gives the student's verdicts on all these rings.
    """
    size = int(rng.integers(3, 6))
    names = (*RIGHT, *WRONG, WRONG_FOR)
    for place, name in enumerate(names):
        yield Case((names[: place + 1], size), name.format(size=size), run=verdicts_on)


def verdicts_on(call: Callable[..., Any], names: Sequence[str], size: int) -> list[Any]:
    """Return the result of a student's test for each of the rings."""
    try:
        return [call(ring_of(name, size)) for name in names]
    except HybridLabError as why:
        if why.code == "raises" and "AssertionError" in str(why):
            raise HybridLabError(f"{why}: return False in place of it", "asserts") from None
        raise


def read_verdicts(verdicts: Sequence[Any]) -> list[bool]:
    """Return the verdicts of a student's test, or raise an error if a verdict is neither True nor False."""
    for verdict in verdicts:
        if not isinstance(verdict, (bool, np.bool_)):
            raise HybridLabError(f"the function returns True or False, not {short_repr(verdict)}", "not-true-or-false")
    return [bool(verdict) for verdict in verdicts]


def _formed(found: Any, wanted: Floats) -> bool:
    return bool(found.shape == wanted.shape and found.dtype == np.float64)


def _within(found: Any, wanted: Floats) -> bool:
    return bool(np.allclose(found, wanted, rtol=0, atol=1e-9))


def _alike(found: Any, wanted: Floats) -> bool:
    return _formed(found, wanted) and _within(found, wanted)


def _with_values(values: Floats, good: Callable[[Any, Floats], bool] = _alike) -> Callable[..., list[bool]]:
    """Return a wrong test, which tries each ring on only one array of values.

    ``good`` compares the averages of a ring with the right averages.
    """
    wanted = every_rank(values.mean(axis=0), len(values))

    @cache  # a ring occurs again in all later cases
    def passes(name: str, size: int) -> bool:
        return good(np.asarray(ring_of(name, size)(values.copy())), wanted)

    return lambda names, size: [passes(name, size) for name in names]


def _with_shapes(
    ranks: Sequence[int], sizes: Sequence[int], good: Callable[[Any, Floats], bool] = _alike, unchanged: bool = True
) -> Callable[..., list[bool]]:
    """Return a wrong test, which tries each ring only on arrays of these shapes.

    If ``unchanged`` is true, the test also checks that the ring leaves its argument unchanged.
    """

    def passes_one(ring: Ring, shape: tuple[int, int]) -> bool:
        values = np.random.default_rng(shape).normal(size=shape)
        before = values.copy()
        found = np.asarray(ring(values))
        alike = good(found, every_rank(before.mean(axis=0), len(before)))
        return alike and not (unchanged and (values != before).any())

    @cache
    def passes(name: str, size: int) -> bool:
        return all(passes_one(ring_of(name, size), shape) for shape in product(ranks, sizes))

    return lambda names, size: [passes(name, size) for name in names]


_THREE = np.random.default_rng(7).normal(size=(3, 7))
_TWO = np.random.default_rng(7).normal(size=(2, 4))
_ALIKE = np.tile(_THREE[0], (3, 1))
COARSE = "your test allows too large an error; np.allclose, for example, allows 1e-5 of a number by default: give rtol=0 and atol=1e-9"
NO_ABS = "an error below 0 passes this test: compare the absolute error, abs(found - wanted)"

MISTAKES = [
    KnownMistake(
        "passes-everything",
        "the test passes every ring: let it compare the result with one that numpy computes",
        lambda names, size: [True] * len(names),
    ),
    KnownMistake("passes-nothing", "the test fails every ring, also the right rings", lambda names, size: [False] * len(names)),
    KnownMistake(
        "inverted",
        "the test returns False for the right rings and True for wrong ones",
        lambda names, size: [name not in RIGHT for name in names],
        under={"true-for-a-fault": "the test returns True for the right rings and False for wrong ones: here True is for a fault"},
    ),
    KnownMistake(
        "replicas-alone",
        "the test compares the replicas with each other alone: they can agree on wrong numbers",
        _with_values(_THREE, lambda found, wanted: bool((found == found[0]).all())),
    ),
    KnownMistake(
        "exactly-equal",
        "the test fails a right ring: the ring adds up in another order than numpy, so the last digits differ; allow a small difference",
        _with_values(_THREE, lambda found, wanted: bool((found == wanted).all()) and found.shape == wanted.shape),
    ),
    KnownMistake(
        "rank-0-alone",
        "the test looks at rank 0 alone: compare all ranks",
        _with_values(_THREE, lambda found, wanted: _within(found.flat[:7], wanted[0])),
    ),
    KnownMistake(
        "last-rank-alone",
        "the test does not look at every rank: compare the numbers of all ranks",
        _with_values(_THREE, lambda found, wanted: _within(np.atleast_2d(found)[-1], wanted[0])),
    ),
    KnownMistake("no-abs", NO_ABS, _with_values(_THREE, lambda found, wanted: bool((found - wanted).max() <= 1e-9))),
    KnownMistake("no-abs", NO_ABS, _with_values(_THREE, lambda found, wanted: bool((wanted - found).max() <= 1e-9))),
    KnownMistake(
        "nan-passes",
        "a ring that returns NaN passes, because a comparison with NaN is False: test that all numbers are close, not that none is far",
        _with_values(_THREE, lambda found, wanted: not (np.abs(found - wanted) > 1e-9).any()),
    ),
    KnownMistake("equal-rows", "the test gives all ranks the same numbers: give each rank other numbers", _with_values(_ALIKE)),
    KnownMistake("two-replicas-alone", "the test tries D = 2 alone: let it try 1 to 5", _with_values(_TWO)),
    KnownMistake("no-signs", "the test tries no negative numbers", _with_values(np.abs(_THREE))),
    KnownMistake(
        "shape-not-compared",
        "a ring that returns one row for all ranks passes: test the shape of the result, too",
        _with_values(_THREE, _within),
    ),
    KnownMistake(
        "coarse",
        COARSE,
        _with_values(_THREE, lambda found, wanted: found.shape == wanted.shape and bool(np.allclose(found, wanted))),
    ),
    KnownMistake("coarse", COARSE, _with_values(_THREE, lambda found, wanted: _formed(found, wanted) and bool(np.allclose(found, wanted)))),
    KnownMistake(
        "whole-chunks-alone",
        "the test tries only n that are divisible by D: let it try other n, too",
        _with_shapes([1, 2, 4], [4, 8]),
    ),
    KnownMistake("no-small-n", "the test tries no n below D: let it try several n, from 1 on", _with_shapes(range(1, 6), [7])),
    KnownMistake("powers-of-two-alone", "the test tries only D = 1, 2 and 4: let it try 1 to 5", _with_shapes([1, 2, 4], range(1, 9))),
    KnownMistake(
        "argument-not-compared",
        "the test does not look at `values` after the call: compare `values` with a copy from before the call",
        _with_shapes(range(1, 6), range(1, 9), unchanged=False),
    ),
    KnownMistake("few-ranks", "the test tries too few D: let it try 1 to 5", _with_shapes([3], range(1, 9))),
    KnownMistake("no-single-rank", "the test does not try D = 1: let it try 1 to 5", _with_shapes(range(2, 6), range(1, 9))),
    KnownMistake("no-single-number", "the test does not try n = 1: let it try 1 to 8", _with_shapes(range(1, 6), range(2, 9))),
]


def _weights(values: Floats) -> Floats:
    """Return the weight r + 1 of each rank r, shape (ranks, 1)."""
    return np.arange(1.0, len(values) + 1)[:, None]


RATE = 0.3  # the learning rate of the lab
SUMS = each_number(lambda value, case: value * len(case[0]), lambda value, case: value / len(case[0]))  # turns means into sums
WEIGHTED = of_value(
    lambda values: values / _weights(values) * _weights(values).mean(), lambda values: values * _weights(values) / _weights(values).mean()
)
MATRICES = of_value(lambda values: values[..., None], lambda values: values[..., 0])
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
