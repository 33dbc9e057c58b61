"""How the error of an all-reduce grows with the ranks: measured by running it, beside the law, as plain data for a picture."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybridlab import formulas
from hybridlab.checks import known_name, whole_number
from hybridlab.collectives import one_shot_all_reduce, ring_all_reduce
from hybridlab.errors import HybridLabError
from hybridlab.widgets.choices import several, whole_numbers, wire_formats
from hybridlab.wire import BF16, FP16, FP32, INT8, WireFormat

Floats = npt.NDArray[np.float64]
Data = dict[str, Any]  # what json.dumps takes

RANKS = (2, 4, 8, 16, 32, 64)
FORMATS = (FP16, BF16, INT8, WireFormat("INT8", block=256), WireFormat("INT8", stochastic=True))
MOST_RANKS = 128
MOST_FORMATS = 6  # in one picture, each with a mark of its own
MOST_ENCODED = 10**9  # numbers, in all
DIGITS = 4  # of an error: the last bits of a sum differ from machine to machine

ALGORITHMS: Mapping[str, Callable[..., Any]] = MappingProxyType({"ring": ring_all_reduce, "one-shot": one_shot_all_reduce})
DISTRIBUTIONS: Mapping[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = MappingProxyType(
    {
        "normal": lambda rng, shape: rng.standard_normal(shape),
        "Laplace": lambda rng, shape: rng.laplace(scale=0.5**0.5, size=shape),
    }
)  # both with mean 0 and variance 1


class ErrorRow(NamedTuple):
    """One measured all-reduce: its NMSE beside the law's, the most bytes that a rank sends, and FP32's bytes over them."""

    algorithm: str
    distribution: str
    wire: WireFormat
    ranks: int
    nmse: float
    law: float
    nbytes: int
    saving: float


def nmse(found: npt.ArrayLike, true: npt.ArrayLike) -> float:
    """Return the mean square of the error, divided by the mean square of the true values.

    >>> nmse([1.0, 2.0, 2.5], [1.0, 2.0, 2.0])
    0.027777777777777776
    """
    truth = np.asarray(true, dtype=np.float64)
    return float(np.mean((np.asarray(found, dtype=np.float64) - truth) ** 2) / np.mean(truth**2))


@lru_cache(maxsize=8)
def error_rows(
    ranks: tuple[int, ...], formats: tuple[WireFormat, ...], distributions: tuple[str, ...], size: int, seed: int
) -> tuple[ErrorRow, ...]:
    """Return a row for every all-reduce, distribution, wire format and number of ranks, measured on ``size`` numbers a rank.

    The gradients are independent from rank to rank, with variance 1; those of fewer ranks are the first of those of more.
    The law is that of normal numbers.
    """
    gradients = {name: DISTRIBUTIONS[name](np.random.default_rng(seed), (max(ranks), size)) for name in distributions}
    return tuple(
        _row(algorithm, name, wire, gradients[name][:count], np.random.default_rng([seed, count]))
        for algorithm, name, wire, count in product(ALGORITHMS, distributions, formats, ranks)
    )


def _row(algorithm: str, distribution: str, wire: WireFormat, values: Floats, rng: np.random.Generator) -> ErrorRow:
    ranks, size = values.shape
    result = ALGORITHMS[algorithm](values, wire, rng=rng)
    nbytes = int(result.bytes_sent.max())
    whole = 2 * (ranks - 1) * FP32.nbytes(-(-size // ranks))
    error = float(f"{nmse(result.values[0], values.mean(axis=0)):.{DIGITS}g}")
    expected = float(f"{law(algorithm, wire, ranks, size):.{DIGITS}g}")
    return ErrorRow(algorithm, distribution, wire, ranks, error, expected, nbytes, round(whole / nbytes, DIGITS))


def law(algorithm: str, wire: WireFormat, ranks: int, size: int) -> float:
    """Return the NMSE that the closed form gives for ``size`` normal numbers a rank, cut into a chunk a rank.

    >>> f"{law('ring', INT8, 8, 131_072):.1e}"
    '4.0e-04'
    """
    if wire.roundoff is not None:
        return formulas.cast_nmse(wire.roundoff) * ((ranks - 1) / 2 + 1 if algorithm == "ring" else 2)
    chunk = -(-size // ranks)
    crest = formulas.gaussian_crest(min(chunk, wire.block or chunk))
    if algorithm == "ring":
        return formulas.int8_ring_nmse(ranks, crest, wire.stochastic)
    return formulas.int8_one_shot_nmse(crest, wire.stochastic)


def checked_grid(
    ranks: Any, formats: Any, distributions: Any, size: Any, seed: Any
) -> tuple[tuple[int, ...], tuple[WireFormat, ...], tuple[str, ...], int, int]:
    """Return what is to be measured, each value once and the ranks in order, or refuse it."""
    counts = tuple(whole_numbers(ranks, "ranks", at_least=2, at_most=MOST_RANKS))
    wires = tuple(wire_formats(formats, "formats"))
    names = tuple(dict.fromkeys(known_name(each, DISTRIBUTIONS, "distribution") for each in several(distributions, "distributions")))
    size, seed = whole_number(size, "size", at_most=2**20), whole_number(seed, "seed", at_least=0, at_most=2**32)
    if len(wires) > MOST_FORMATS:
        raise HybridLabError(f"{len(wires)} wire formats are too many for one picture: give at most {MOST_FORMATS}")
    if size < counts[-1]:
        raise HybridLabError(f"size must be at least the largest number of ranks, a number for each: {size} is less than {counts[-1]}")
    if 4 * sum(counts) * size * len(wires) * len(names) > MOST_ENCODED:
        raise HybridLabError("measuring this would take minutes: give fewer ranks or formats, or a smaller size")
    return counts, wires, names, size, seed


def error_data(rows: Iterable[ErrorRow], size: int) -> Data:
    """Return the rows as data from which JavaScript alone can draw: ``series`` has lists, one value for each of ``ranks``.

    A series is named "ring/normal/INT8" and holds ``nmse``, ``law``, ``nbytes`` and ``saving``.
    """
    listed = list(rows)
    series: Data = {}
    for row in listed:
        entry = series.setdefault(f"{row.algorithm}/{row.distribution}/{row.wire}", {"nmse": [], "law": [], "nbytes": [], "saving": []})
        for name, values in entry.items():
            values.append(getattr(row, name))
    names: dict[str, Iterator[Any]] = {
        "ranks": (row.ranks for row in listed),
        "formats": (str(row.wire) for row in listed),
        "algorithms": (row.algorithm for row in listed),
        "distributions": (row.distribution for row in listed),
    }
    return {"size": size, **{name: list(dict.fromkeys(values)) for name, values in names.items()}, "series": series}
