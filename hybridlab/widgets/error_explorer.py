"""The error explorer: it shows the error of an all-reduce and the bytes that a rank sends, against the number of ranks."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import traitlets

from hybridlab import formulas
from hybridlab.arrays import Floats
from hybridlab.checks import counted, known_name, short_repr, whole_number
from hybridlab.collectives import one_shot_all_reduce, ring_all_reduce
from hybridlab.errors import HybridLabError
from hybridlab.widgets.choices import one_or_several, whole_numbers, wire_formats
from hybridlab.widgets.page_data import Data
from hybridlab.widgets.scripts import FromFiles, script_of, style_sheet
from hybridlab.widgets.view import Checked, View, shown_first
from hybridlab.wire import BF16, FP16, FP32, INT8, LEVELS, WireFormat

RANKS = (2, 4, 8, 16, 32, 64)
FORMATS = (FP16, BF16, INT8, WireFormat("INT8", block=256), WireFormat("INT8", stochastic=True))
BOTH = "both"  # shows the lines of both algorithms
MOST_RANKS = 128
MOST_FORMATS = 6  # largest number of formats in one view; each format has its own marker
MOST_ENCODED = 10**9  # largest count of numbers in all messages together; more would take minutes
DIGITS = 4  # significant digits of an error, because the last bits of a sum differ from machine to machine

ALGORITHMS: Mapping[str, Callable[..., Any]] = MappingProxyType({"ring": ring_all_reduce, "one-shot": one_shot_all_reduce})
DISTRIBUTIONS: Mapping[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = MappingProxyType(
    {
        "normal": lambda rng, shape: rng.standard_normal(shape),
        "Laplace": lambda rng, shape: rng.laplace(scale=0.5**0.5, size=shape),
    }
)  # both distributions have mean 0 and variance 1


class ErrorExplorer(View):
    """A view of the measured error (NMSE) of an all-reduce against the number of ranks, with the closed form and the bytes per rank.

    NMSE is the mean square of the error divided by the mean square of the true values. The constructor runs every all-reduce twice: as a
    ring and as one shot. The trait ``measured`` has all results, so the view works without a running kernel. ``rows`` has the same results
    as rows. The traits ``algorithm`` ("ring", "one-shot" or "both"), ``distribution``, ``formats`` (names of the formats in the view) and
    ``ranks`` (the position of the marker) change with the controls. Python can observe and set them.

    Parameters
    ----------
    ranks : int or iterable of int
        Numbers of ranks, 2 to 128.
    formats : WireFormat or iterable of WireFormat
        The wire formats, at most 6.
    distributions : str or iterable of str
        The distributions of the gradients: "normal", "Laplace".
    size : int
        The count of numbers in the gradient of one rank.
    seed : int
        The seed of all random numbers.
    show : mapping or None
        The first setting, such as ``{"ranks": 8, "formats": ["INT8"]}``.

    Raises
    ------
    HybridLabError
        A value is wrong, there are too many formats, or the measurement would take minutes.

    Examples
    --------
    >>> explorer = ErrorExplorer(ranks=(2, 4), size=1024, show={"ranks": 4})
    >>> explorer
    <ErrorExplorer: 1,024 numbers on 2 to 4 ranks; shows FP16, BF16, INT8, INT8, block 256, INT8, stochastic; ring, normal, 4 ranks>
    >>> explorer.rows[0].nbytes
    2048
    """

    SETTING = ("algorithm", "distribution", "formats", "ranks")
    _esm = FromFiles(script_of, "error_explorer.js")
    _css = FromFiles(style_sheet, "errors", files=("chart.css", "error_explorer.css"))

    measured = traitlets.Dict(read_only=True).tag(sync=True)
    algorithm = Checked().tag(sync=True)
    distribution = Checked().tag(sync=True)
    formats = Checked().tag(sync=True)
    ranks = Checked().tag(sync=True)

    def __init__(
        self,
        ranks: Any = RANKS,
        formats: Any = FORMATS,
        distributions: Any = tuple(DISTRIBUTIONS),
        size: int = 131_072,
        *,
        seed: int = 5,
        show: Mapping[str, Any] | None = None,
    ) -> None:
        grid = _checked_grid(ranks, formats, distributions, size, seed)
        asked = shown_first(show, self.SETTING, '{"ranks": 8}')
        self._rows = error_rows(grid)
        data = error_data(self._rows, grid.size)
        first = {
            "algorithm": data["algorithms"][0],
            "distribution": data["distributions"][0],
            "formats": data["formats"],
            "ranks": 8 if 8 in data["ranks"] else data["ranks"][0],
        }
        self.set_trait("measured", data)
        super().__init__(**(first | asked))

    def checked(self, name: str, value: Any) -> Any:
        """Return the value for one trait of the setting, or raise an error if the explorer has not measured this value.

        >>> ErrorExplorer(ranks=(2, 4), size=64).checked("ranks", 3)
        Traceback (most recent call last):
        hybridlab.errors.HybridLabError: this explorer has measured 2 and 4 ranks, not 3
        """
        if name == "algorithm":
            return known_name(value, [*self.measured["algorithms"], BOTH], "algorithm")
        if name == "distribution":
            return known_name(value, self.measured["distributions"], "distribution")
        if name == "formats":
            return self._checked_formats(value)
        count = whole_number(value, "ranks")
        if count not in self.measured["ranks"]:
            *fewer, most = map(str, self.measured["ranks"])
            counts = f"{', '.join(fewer)} and {most}" if fewer else most
            raise HybridLabError(f"this explorer has measured {counts} ranks, not {short_repr(value)}", "out-of-range")
        return count

    def _checked_formats(self, value: Any) -> list[str]:
        """Return the names of wire formats in the order of the data, or raise an error for a name that is not in the data."""
        if not isinstance(value, (list, tuple)):
            wanted = 'a list of names of wire formats, such as ["INT8"]'
            raise HybridLabError(f"formats must be {wanted}, not {short_repr(value)}", "not-a-list")
        known = self.measured["formats"]
        names = {known_name(each if isinstance(each, str) else str(each), known, "wire format") for each in value}
        return [each for each in known if each in names]

    @property
    def rows(self) -> tuple["ErrorRow", ...]:
        """Every measured all-reduce, as rows of algorithm, distribution, wire, ranks, nmse, law, nbytes and saving."""
        return self._rows

    def still(self) -> Any:
        """Return the measured errors against the number of ranks as a figure."""
        from hybridlab.plot import lines

        # A figure of both algorithms would have too many lines, so it has those of the ring.
        algorithm = self.measured["algorithms"][0] if self.algorithm == BOTH else self.algorithm
        rows = [row for row in self.rows if (row.algorithm, row.distribution) == (algorithm, self.distribution)]
        errors = {name: [row.nmse for row in rows if str(row.wire) == name] for name in self.formats}
        title = f"Measured error of the {algorithm} all-reduce, {self.distribution} numbers"
        return lines(self.measured["ranks"], errors, x_label="ranks", y_label="NMSE of the mean", title=title, log_y=True)

    def __repr__(self) -> str:
        """Return the grid and the setting. Measured numbers are left out, so that the text is the same on every machine."""
        ranks = self.measured["ranks"]
        span = f"{ranks[0]} to {counted(ranks[-1], 'rank')}" if len(ranks) > 1 else counted(ranks[0], "rank")
        drawn = ", ".join(self.formats) or "no format"
        setting = f"{drawn}; {self.algorithm}, {self.distribution}, {counted(self.ranks, 'rank')}"
        return f"<ErrorExplorer: {counted(self.measured['size'], 'number')} on {span}; shows {setting}>"


class ErrorRow(NamedTuple):
    """One measured all-reduce.

    ``law`` is the NMSE from the closed form. ``nbytes`` is the largest number of bytes that a rank sends. ``saving`` is the number of
    bytes that a rank sends in an FP32 ring, divided by ``nbytes``.
    """

    algorithm: str
    distribution: str
    wire: WireFormat
    ranks: int
    nmse: float
    law: float
    nbytes: int
    saving: float


class ErrorGrid(NamedTuple):
    """The all-reduces to measure: one for each combination of ranks, formats and distributions. A rank has ``size`` numbers."""

    ranks: tuple[int, ...]
    formats: tuple[WireFormat, ...]
    distributions: tuple[str, ...]
    size: int
    seed: int


@lru_cache(maxsize=8)  # cached, because several views of a notebook can show the same grid
def error_rows(grid: ErrorGrid) -> tuple[ErrorRow, ...]:
    """Return one row for every algorithm, distribution, wire format and number of ranks of a grid.

    The gradients of different ranks are independent and have variance 1. A run with R ranks uses the first R gradients.
    """
    shape = max(grid.ranks), grid.size
    gradients = {name: DISTRIBUTIONS[name](np.random.default_rng(grid.seed), shape) for name in grid.distributions}
    return tuple(
        # A new generator for each run, so that a row does not depend on the other rows.
        _measure(algorithm, name, wire, gradients[name][:count], np.random.default_rng([grid.seed, count]))
        for algorithm, name, wire, count in product(ALGORITHMS, grid.distributions, grid.formats, grid.ranks)
    )


def nmse(found: npt.ArrayLike, true: npt.ArrayLike) -> float:
    """Return the mean square of the error, divided by the mean square of the true values.

    >>> nmse([1.0, 2.0, 2.5], [1.0, 2.0, 2.0])
    0.027777777777777776
    """
    truth = np.asarray(true, dtype=np.float64)
    return float(np.mean((np.asarray(found, dtype=np.float64) - truth) ** 2) / np.mean(truth**2))


def closed_form_nmse(algorithm: str, wire: WireFormat, ranks: int, size: int) -> float:
    """Return the NMSE from the closed form, for normally distributed numbers.

    Parameters
    ----------
    algorithm : str
        "ring" or "one-shot".
    wire : WireFormat
        The format of every message.
    ranks : int
        The number of ranks, which is also the number of chunks of a gradient.
    size : int
        Numbers in the gradient of one rank.

    Examples
    --------
    >>> f"{closed_form_nmse('ring', INT8, 8, 131_072):.1e}"
    '4.0e-04'
    """
    if wire.roundoff is not None:
        # In a ring, hop j rounds the partial sum of j ranks. The variance of this sum is j times the variance of one rank. So the
        # D - 1 hops together cause (D - 1)/2 times the error of rounding the whole sum. In one shot, D - 1 of D terms are rounded.
        # The 1 is for the rounding of the finished sum.
        return formulas.cast_nmse(wire.roundoff) * ((ranks - 1) / (2 if algorithm == "ring" else ranks) + 1)
    # The size of the largest chunk. There is one scale for each block, or one scale for the whole chunk without blocks.
    chunk = -(-size // ranks)
    # The formulas are for INT8. INT4 has longer steps, as INT8 would have with a crest that is 127 / 7 times as large.
    crest = formulas.gaussian_crest(min(chunk, wire.block or chunk)) * LEVELS / wire.coding.largest
    if algorithm == "ring":
        return formulas.int8_ring_nmse(ranks, crest, wire.stochastic)
    return formulas.int8_one_shot_nmse(ranks, crest, wire.stochastic)


def error_data(rows: Iterable[ErrorRow], size: int) -> Data:
    """Return the rows as plain data for the script.

    Parameters
    ----------
    rows : iterable of ErrorRow
        The measured all-reduces.
    size : int
        Numbers in the gradient of one rank.

    Returns
    -------
    dict
        ``ranks``, ``formats``, ``algorithms`` and ``distributions`` list the measured values. ``series`` has an entry for each line under a
        key such as "ring/normal/INT8". An entry has lists ``nmse``, ``law``, ``nbytes`` and ``saving``, with one value for each number of
        ranks.
    """
    listed = list(rows)
    series: Data = {}
    for row in listed:
        entry = series.setdefault(f"{row.algorithm}/{row.distribution}/{row.wire}", {"nmse": [], "law": [], "nbytes": [], "saving": []})
        for name, values in entry.items():
            values.append(getattr(row, name))
    return {
        "size": size,
        "ranks": list(dict.fromkeys(row.ranks for row in listed)),
        "formats": list(dict.fromkeys(str(row.wire) for row in listed)),
        "algorithms": list(dict.fromkeys(row.algorithm for row in listed)),
        "distributions": list(dict.fromkeys(row.distribution for row in listed)),
        "series": series,
    }


def _measure(algorithm: str, distribution: str, wire: WireFormat, values: Floats, rng: np.random.Generator) -> ErrorRow:
    """Run one all-reduce on values of shape (ranks, size), and return its row."""
    ranks, size = values.shape
    result = ALGORITHMS[algorithm](values, wire, rng=rng)
    nbytes = int(result.bytes_sent.max())
    # 2(D - 1) messages of one chunk each
    fp32_bytes = 2 * (ranks - 1) * FP32.nbytes(-(-size // ranks))
    error = float(f"{nmse(result.values[0], values.mean(axis=0)):.{DIGITS}g}")
    expected = float(f"{closed_form_nmse(algorithm, wire, ranks, size):.{DIGITS}g}")
    return ErrorRow(algorithm, distribution, wire, ranks, error, expected, nbytes, round(fp32_bytes / nbytes, DIGITS))


def _checked_grid(ranks: Any, formats: Any, distributions: Any, size: Any, seed: Any) -> ErrorGrid:
    """Return the grid of all-reduces without duplicates and with sorted ranks, or raise an error for wrong arguments."""
    counts = tuple(whole_numbers(ranks, "ranks", at_least=2, at_most=MOST_RANKS))
    wires = tuple(wire_formats(formats, "formats"))
    names = [known_name(each, DISTRIBUTIONS, "distribution") for each in one_or_several(distributions, "distributions")]
    grid = ErrorGrid(
        counts,
        wires,
        tuple(dict.fromkeys(names)),
        whole_number(size, "size", at_most=2**20),
        whole_number(seed, "seed", at_least=0, at_most=2**32),
    )
    if len(wires) > MOST_FORMATS:
        raise HybridLabError(f"{len(wires)} wire formats are too many for one picture: give at most {MOST_FORMATS}", "wrong-length")
    if grid.size < counts[-1]:
        wanted = "size must be at least the largest number of ranks, since each rank has a chunk"
        raise HybridLabError(f"{wanted}: {grid.size} is less than {counts[-1]}", "too-small")
    # 4: two algorithms, and each algorithm encodes every number of a rank about twice.
    if 4 * sum(counts) * grid.size * len(wires) * len(grid.distributions) > MOST_ENCODED:
        raise HybridLabError("this would take minutes to measure: give fewer ranks or formats, or a smaller size", "too-large")
    return grid
