"""The zoo: a public set of pipeline-scheduling problems, with the best known order and the best known bound of each.

An instance is a JSON file in the folder ``instances``, and a record one in the folder ``records``. A changed instance gets a new name, so a
name and ``VERSION`` say what was solved. ``CITATION`` says how to name the set in a paper.
"""

import re
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError
from hybridlab.zoo.solving import record_of, solve
from hybridlab.zoo.verification import ZooVerdict, verify
from hybridlab.zoo.zoo_instance import CLASSES, ZooInstance, read_instance
from hybridlab.zoo.zoo_record import DIFFICULTIES, REASONS, FoundBy, ProvenBy, Record, read_record

__all__ = [
    "CITATION",
    "CLASSES",
    "DIFFICULTIES",
    "REASONS",
    "VERSION",
    "FoundBy",
    "ProvenBy",
    "Record",
    "ZooInstance",
    "ZooVerdict",
    "instance",
    "instances",
    "read_instance",
    "read_record",
    "record",
    "record_of",
    "solve",
    "verify",
]

VERSION = "1.0"  # of the set; it changes when an instance comes or goes
CITATION = f"hybridlab: a zoo of pipeline-scheduling problems with proven optima, version {VERSION}, https://github.com/hybridlab/hybridlab"
FOLDER = Path(__file__).parent


@cache
def instances() -> tuple[ZooInstance, ...]:
    """Return all instances, in the order of their classes and of their names. Numbers in names count as numbers.

    >>> len({each.name for each in instances()}) == len(instances())
    True
    """
    found = map(read_instance, (FOLDER / "instances").glob("*.json"))
    return tuple(sorted(found, key=lambda each: (CLASSES.index(each.group), _by_number(each.name))))


def instance(name: str) -> ZooInstance:
    """Return the instance of this name.

    Raises
    ------
    HybridLabError
        ``unknown-name``. The sentence has the nearest name.

    Examples
    --------
    >>> found = instance("even-2x4-m1")
    >>> found.devices, found.microbatches, found.memory, found.bound
    (2, 4, 1, 200)
    """
    return _by_name()[_known(name)]


def record(name: str) -> Record:
    """Return the record of the instance of this name.

    Raises
    ------
    HybridLabError
        ``unknown-name``. The sentence has the nearest name.

    Examples
    --------
    >>> record("even-2x4-m1").closed
    True
    """
    return _record(_known(name))


@cache
def _record(name: str) -> Record:
    return read_record(FOLDER / "records" / f"{name}.json")


@cache
def _by_name() -> dict[str, ZooInstance]:
    return {each.name: each for each in instances()}


def _known(name: str) -> str:
    known = _by_name()
    if isinstance(name, str) and name in known:
        return name
    near = get_close_matches(name[:80] if isinstance(name, str) else "", known, n=1, cutoff=0.4)
    hint = f" did you mean {near[0]!r}?" if near else ""
    raise HybridLabError(f"unknown instance {short_repr(name)}:{hint} hybridlab zoo list shows all", "unknown-name")


def _by_number(name: str) -> list[tuple[bool, int, str]]:
    """Return a key that sorts names with numbers: 4x8 before 16x32."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.findall(r"\d+|\D+", name)]
