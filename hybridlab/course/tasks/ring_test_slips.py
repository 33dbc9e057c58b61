"""Typical mistakes in a student's test of a ring, each as a test that makes this mistake."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.course.tasks.builds import Slip
from hybridlab.course.tasks.planted import RIGHT, Ring, every_rank, ring_of


def _formed(found: Any, wanted: Floats) -> bool:
    return bool(found.shape == wanted.shape and found.dtype == np.float64)


def _within(found: Any, wanted: Floats) -> bool:
    return bool(np.allclose(found, wanted, rtol=0, atol=1e-9))


def _alike(found: Any, wanted: Floats) -> bool:
    return _formed(found, wanted) and _within(found, wanted)


def _with_values(values: Floats, good: Callable[[Any, Floats], bool] = _alike) -> Callable[..., list[bool]]:
    """Return a known mistake: a test that tries a ring on one array of values. ``good`` compares its averages with the right ones."""
    wanted = every_rank(values.mean(axis=0), len(values))

    @cache  # each case has the rings of the cases before it
    def passes(name: str, size: int) -> bool:
        return good(np.asarray(ring_of(name, size)(values.copy())), wanted)

    return lambda names, size: [passes(name, size) for name in names]


def _with_shapes(
    ranks: Sequence[int], sizes: Sequence[int], good: Callable[[Any, Floats], bool] = _alike, unchanged: bool = True
) -> Callable[..., list[bool]]:
    """Return a known mistake: a test that tries a ring on arrays of these shapes. ``unchanged``: it also looks at the argument."""

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
COARSE = "the tolerance is too wide, for example 1e-5 of the number, which np.allclose has by default: give rtol=0 and atol=1e-9"
NO_ABS = "an error below 0 passes this test: compare the absolute error, abs(found - mean)"

RING_TESTS = [
    Slip(
        "passes-everything",
        "the test passes every ring: let it compare the averages with numpy's mean",
        lambda names, size: [True] * len(names),
    ),
    Slip("passes-nothing", "the test fails every ring, also the right one", lambda names, size: [False] * len(names)),
    Slip(
        "inverted",
        "the test returns False for the right rings and True for wrong ones",
        lambda names, size: [name not in RIGHT for name in names],
    ),
    Slip(
        "replicas-alone",
        "the test compares the replicas with each other alone: they can agree on wrong numbers",
        _with_values(_THREE, lambda found, wanted: bool((found == found[0]).all())),
    ),
    Slip(
        "exactly-equal",
        "a right ring adds up in another order than numpy, so its last digits differ: allow a small distance",
        _with_values(_THREE, lambda found, wanted: bool((found == wanted).all()) and found.shape == wanted.shape),
    ),
    Slip("rank-0-alone", "the test looks at rank 0 alone", _with_values(_THREE, lambda found, wanted: _within(found.flat[:7], wanted[0]))),
    Slip(
        "last-rank-alone",
        "the test does not look at every rank: compare all rows with the mean",
        _with_values(_THREE, lambda found, wanted: _within(np.atleast_2d(found)[-1], wanted[0])),
    ),
    Slip("no-abs", NO_ABS, _with_values(_THREE, lambda found, wanted: bool((found - wanted).max() <= 1e-9))),
    Slip("no-abs", NO_ABS, _with_values(_THREE, lambda found, wanted: bool((wanted - found).max() <= 1e-9))),
    Slip(
        "nan-passes",
        "a comparison with NaN is False: test that the averages are close, not that they are far apart",
        _with_values(_THREE, lambda found, wanted: not (np.abs(found - wanted) > 1e-9).any()),
    ),
    Slip("equal-rows", "the test gives all ranks the same numbers", _with_values(_ALIKE)),
    Slip("two-replicas-alone", "the test tries D = 2 alone", _with_values(_TWO)),
    Slip("no-signs", "the test tries no negative numbers", _with_values(np.abs(_THREE))),
    Slip(
        "shape-not-compared",
        "numpy compares one row with all rows: test the shape of the result, too",
        _with_values(_THREE, _within),
    ),
    Slip(
        "coarse",
        COARSE,
        _with_values(_THREE, lambda found, wanted: found.shape == wanted.shape and bool(np.allclose(found, wanted))),
    ),
    Slip("coarse", COARSE, _with_values(_THREE, lambda found, wanted: _formed(found, wanted) and bool(np.allclose(found, wanted)))),
    Slip("whole-chunks-alone", "the test tries only n that D divides: let it try others, too", _with_shapes([1, 2, 4], [4, 8])),
    Slip("no-small-n", "the test tries no n below D: let it try several n, from 1 on", _with_shapes(range(1, 6), [7])),
    Slip("powers-of-two-alone", "the test tries no D but 1, 2 and 4: let it try 1 to 5", _with_shapes([1, 2, 4], range(1, 9))),
    Slip(
        "argument-not-compared",
        "the test does not look at `values` after the call: compare it with a copy from before the call",
        _with_shapes(range(1, 6), range(1, 9), unchanged=False),
    ),
    Slip("few-ranks", "the test tries too few D: let it try 1 to 5", _with_shapes([3], range(1, 9))),
    Slip("no-single-rank", "the test does not try D = 1: let it try 1 to 5", _with_shapes(range(2, 6), range(1, 9))),
    Slip("no-single-number", "the test does not try n = 1: let it try 1 to 8", _with_shapes(range(1, 6), range(2, 9))),
]
