"""Functions for the data of a view's script: JSON with few digits, small enough for a web page."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from hybridlab.errors import HybridLabError
from hybridlab.palette import shade_colour
from hybridlab.schedule import KINDS
from hybridlab.schedules import REGISTRY

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


def operation_kinds(chunks: Mapping[str, Iterable[int]]) -> Data:
    """Return the words and the colours of each kind of operation.

    Parameters
    ----------
    chunks : mapping of str to iterable of int
        Name of a schedule -> the numbers of chunks per device that a view can show.

    Returns
    -------
    dict
        An entry for each kind (F, B, I, W) has ``words`` and ``colours``. ``colours`` maps a number n of shades to a list of n colours. The
        number of shades is the number of chunks on a device times the number of copies of the weights.

    Examples
    --------
    >>> operation_kinds({"gpipe": [1]})["F"]
    {'words': 'forward', 'colours': {'1': ['#56B4E9']}}
    """
    # Always include a single shade, because legends show the colour of a kind without shades.
    counts = sorted({1, *(count * REGISTRY[name].copies for name, each in chunks.items() for count in each)})
    return {
        kind.value: {
            "words": kind.words,
            "colours": {str(count): [shade_colour(kind, shade, count) for shade in range(count)] for count in counts},
        }
        for kind in KINDS
    }
