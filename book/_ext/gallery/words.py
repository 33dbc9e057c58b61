"""How the gallery writes numbers, names and texts."""

import re
from collections.abc import Iterable


def by_device(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def each_device(values: Iterable[float]) -> str:
    """Return the values of the devices; equal values are written once."""
    several = list(values)
    if len(several) > 1 and len(set(several)) == 1:
        return f"{several[0]:g} on every device"
    return f"{by_device(several)} on device{'s' if len(several) > 1 else ''} {'0 to ' if len(several) > 1 else ''}{len(several) - 1}"


def listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def counted(count: float, thing: str) -> str:
    return f"{count:g} {thing}{'' if count == 1 else 'es' if thing.endswith('ch') else 's'}"


def upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def escaped(text: str) -> str:
    """Return text in which no character has a meaning in Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|~$])", r"\\\1", text)
