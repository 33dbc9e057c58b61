"""Functions for the data of a view's script: JSON with few digits, small enough for a web page."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from hybridlab.checks import counted
from hybridlab.errors import HybridLabError
from hybridlab.palette import shade_colour
from hybridlab.schedule import KINDS

MOST_BYTES = 2_000_000  # largest number of bytes of JSON for one view
# largest number of operations in a timeline; a browser draws two such timelines in 1.0 to 1.5 s (measured, headless Chromium, two cores)
MOST_OPS = 12_500

Data = dict[str, Any]  # values that json.dumps accepts


def nine_digits(values: Iterable[float]) -> list[float]:
    """Return numbers rounded to nine significant digits. Whole numbers become ints, which are shorter in JSON.

    >>> nine_digits([2.0, 1 / 3])
    [2, 0.333333333]
    """
    floats = (float(f"{value:.9g}") for value in values)
    # Larger whole numbers are shorter as floats, such as 1e+20.
    return [int(value) if value.is_integer() and abs(value) < 1e15 else value for value in floats]


def compact_json(data: Mapping[str, Any], sort_keys: bool = False) -> str:
    """Return data as JSON text without spaces. A page stores them in this form.

    >>> compact_json({"p2p": [0, 0.5]})
    '{"p2p":[0,0.5]}'
    """
    return json.dumps(data, sort_keys=sort_keys, separators=(",", ":"))


def digest(data: Data) -> str:
    """Return eight hexadecimal digits that differ when the data differ.

    >>> digest({"unit": "ms"})
    'b680e8fa'
    """
    # sort_keys, so that the order of keys does not matter
    return hashlib.sha256(compact_json(data, sort_keys=True).encode()).hexdigest()[:8]


def refuse_too_large(nbytes: int, subject: str = "this grid is", advice: str = "give fewer values") -> None:
    """Raise an error if the data of a view have more bytes than a page can carry.

    Parameters
    ----------
    nbytes : int
        The length of the JSON text in bytes, or a lower bound of this length before the data are built.
    subject, advice : str
        The beginning and the end of the error's message.

    Raises
    ------
    HybridLabError
        If ``nbytes`` is larger than ``MOST_BYTES``.

    Examples
    --------
    >>> refuse_too_large(2_000_001)
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: this grid is more than the 2 MB of data that a page can carry: give fewer values
    """
    if nbytes > MOST_BYTES:
        raise HybridLabError(f"{subject} more than the {MOST_BYTES / 1e6:g} MB of data that a page can carry: {advice}", "too-large")


def too_many_to_draw(devices: int, microbatches: int, chunks: int, ops: int | None = None) -> str | None:
    """Return None if a view can draw so many operations. If not, return a sentence with the reason.

    ``ops`` is the number of operations. None means that the schedule is not built yet. Then a forward and a backward for each stage and
    microbatch are counted, because building a very large schedule could take long.

    >>> print(too_many_to_draw(2, 4000, 1))  # doctest: +ELLIPSIS
    2 devices x 4,000 microbatches x 1 chunk have more operations than the 12,500 that can be drawn; try fewer ...
    """
    if (2 * devices * chunks * microbatches if ops is None else ops) <= MOST_OPS:
        return None
    sizes = f"{counted(devices, 'device')} x {counted(microbatches, 'microbatch')} x {counted(chunks, 'chunk')}"
    sentence = f"{sizes} have more operations than the {MOST_OPS:,} that can be drawn"
    return f"{sentence}; try fewer microbatches, or simulate them in Python without a picture"


def operation_kinds(shades: Iterable[int]) -> Data:
    """Return the words and the colours of each kind of operation.

    Parameters
    ----------
    shades : iterable of int
        The numbers of shades that a view needs. A schedule needs as many as a device has chunks, times the number of copies of the weights.

    Returns
    -------
    dict
        An entry for each kind (F, B, I, W) has ``words`` and ``colours``. ``colours`` maps a number n of shades to a list of n colours.

    Examples
    --------
    >>> operation_kinds([1])["F"]
    {'words': 'forward', 'colours': {'1': ['#56B4E9']}}
    """
    # Always include a single shade, because legends show the colour of a kind without shades.
    counts = sorted({1, *shades})
    return {
        kind.value: {
            "words": kind.words,
            "colours": {str(count): [shade_colour(kind, shade, count) for shade in range(count)] for count in counts},
        }
        for kind in KINDS
    }
