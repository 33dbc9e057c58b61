"""The columns of a sweep: their cells as they are drawn, and their words."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab.checks import checked_text, counted, each_of, known_name, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.schedules import REGISTRY

TIMES = ("makespan", "device_span", "p2p", "forward", "backward")
COUNTED = MappingProxyType({"devices": "device", "microbatches": "microbatch", "chunks": "chunk", "replicas": "replica"})
LABELS: Mapping[str, str] = MappingProxyType(
    {
        "devices": "Devices K",
        "microbatches": "Microbatches M",
        "chunks": "Chunks v",
        "replicas": "Replicas D",
        "p2p": "Latency",
        "forward": "Forward time",
        "backward": "Backward time",
        "microbatches_per_device": "Microbatches a device",
        "recompute": "Recompute ratio",
        "input_share": "Input gradient's share of the backward",
        "weight_share": "Weight gradient's share of the backward",
    }
)
LARGEST_VALUE = 1e100  # of what is drawn: far beyond any time, and its squares are finite
UNIT_GONE = "the unit is that of the sweep, as in sweep(..., unit='ms')"  # what panels and SweepExplorer say of their old argument
LIST = ("a list",)  # stands for a cell that holds one value a device


def cell(value: Any, name: str) -> Any:
    """Return the cell of a column as JSON has it, numbers to nine digits; or refuse it.

    >>> cell(np.float64(0.1 + 0.2), "p2p"), cell(3.0, "p2p"), cell([1, 2], "forward") is LIST
    (0.3, 3, True)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (list, tuple, np.ndarray)):
        return LIST
    if value is None or isinstance(value, (str, bool)):
        return value
    if not isinstance(value, (int, float)) or not abs(value) <= LARGEST_VALUE:  # of NaN neither holds
        raise HybridLabError(f"a cell of {name!r} is {short_repr(value)}: what is drawn are finite numbers and texts")
    short = float(f"{value:.9g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def ordered(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return each value once: numbers from the least up, texts as they come.

    >>> ordered([8, 2, 8]), ordered(["zb-h1", "1f1b"])
    ((2, 8), ('zb-h1', '1f1b'))
    """
    once = list(dict.fromkeys(values))
    return tuple(once if any(isinstance(value, str) for value in once) else sorted(once, key=lambda value: (value is None, value or 0)))


def label_of(name: str, labels: Mapping[str, str], unit: str | None = None) -> str:
    """Return a column's words, those of ``labels`` or of this library, with the unit of a time.

    >>> label_of("p2p", {"p2p": "T_C"}, "ms"), label_of("bubble_ratio", {}, "ms"), label_of("T_B_share", {})
    ('T_C, ms', 'Bubble ratio', 'T B share')
    """
    spaced = name.replace("_", " ")
    words = labels.get(name) or LABELS.get(name) or spaced[:1].upper() + spaced[1:]
    return f"{words}, {unit}" if unit and name in TIMES else words


def title_of(name: str, value: Any) -> str:
    """Return the words for one value of a column.

    >>> title_of("schedule", "1f1b"), title_of("p2p", 0.5), title_of("overlap", True)
    ('1F1B', '0.5', 'yes')
    """
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, str):
        return REGISTRY[value].title if name == "schedule" and value in REGISTRY else value
    return f"{value:.6g}"


def line_name(key: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Return what a line is called; chunks are left out where a schedule has but one number of them.

    >>> line_name({"schedule": "hanayo", "chunks": 4}, {}), line_name({"schedule": "gpipe", "chunks": 1}, {})
    ('Hanayo, 4 chunks', 'GPipe')
    """
    family = REGISTRY.get(str(key.get("schedule")))
    if family and family.chunk_step == 0 and key.get("chunks") in (None, family.fewest_chunks):
        key = {name: value for name, value in key.items() if name != "chunks"}
    parts = []
    for name, value in key.items():
        if name in COUNTED and isinstance(value, int):
            parts.append(counted(value, COUNTED[name]))
        else:
            parts.append(title_of(name, value) if isinstance(value, str) else f"{label_of(name, labels)} {title_of(name, value)}")
    return ", ".join(parts) or "all rows"


def checked_labels(labels: Any, known: Iterable[str]) -> dict[str, str]:
    """Return ``labels`` if they are words by column (None: no words), or refuse them.

    >>> checked_labels({"ptp": "Latency"}, ["p2p"])
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: unknown column 'ptp': did you mean 'p2p'? Known: p2p
    """
    if not isinstance(labels, Mapping | None):
        raise HybridLabError(f'labels are words by column, such as {{"p2p": "Latency"}}, not {short_repr(labels)}')
    names = list(known)
    return {known_name(name, names, "column"): checked_text(text, f"the label of {name}") for name, text in (labels or {}).items()}


def several(given: Any, name: str, known: Iterable[str], what: str = "column") -> tuple[str, ...]:
    """Return one name or several, each once, or refuse what is none of ``known``.

    >>> several("makespan", "y", ["makespan", "refused"])
    ('makespan',)
    """
    names = list(known)
    named = [given] if isinstance(given, str) else each_of(given, f"{name} is a {what} or several")
    return tuple(dict.fromkeys(known_name(each, names, what) for each in named))
