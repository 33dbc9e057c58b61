"""Tables over the axes of a cluster explorer's grid: numbers for every combination of some of them, each case computed once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from hybridlab.errors import HybridLabError
from hybridlab.hardware import Profile
from hybridlab.widgets.cluster_explorer_cases import Case, Values, case_of
from hybridlab.widgets.grid import MOST_BYTES
from hybridlab.widgets.pipeline import Data

COUNTS = ("tensor", "stages", "replicas", "microbatches", "microbatch")
DIGITS = 5  # of a time
TOO_MUCH = f"this grid is more than the {MOST_BYTES / 1e6:g} MB of data that a page can carry: give fewer values"

Worth = Callable[[Case], Sequence[float]]  # numbers of a case


class Tables:
    """Makes tables over the axes of a grid; an axis that a table does not name has its first value, a count is 1."""

    def __init__(self, values: Values) -> None:
        first = {name: next(iter(each.values())) for name, each in values.items()}
        counts = product(values["stages"].values(), values["microbatches"].values())
        held = {count: count for count in sorted({min(pair) for pair in counts})}
        self.axes: Values = {**values, "held": held, "reach": {place: place for place in range(3)}}
        self._first = first | dict.fromkeys(COUNTS, 1)

    def case(self, at: Mapping[str, Any]) -> Case:
        """Return the case at some values; with ``held``, the microbatches are as many, or as the stages if those are fewer."""
        microbatches = {"microbatches": min(at["held"], at["stages"])} if "held" in at else {}
        return case_of({**self._first, **at, **microbatches})

    def table(self, names: tuple[str, ...], worth: Callable[[dict[str, Any]], float]) -> Data:
        """Return the table of a number for every combination of the values of axes."""
        return self._table(names, map(worth, self._every(names)))

    def columns(self, names: tuple[str, ...], worth: Worth, of_gpu: Callable[[Profile], Any] = lambda gpu: gpu) -> list[Data]:
        """Return tables over the same axes, one for each number that ``worth`` has of a case.

        They have 0 where the plan does not divide, and where no setting leads: a stage holds no more microbatches than there are stages.
        ``of_gpu`` is what of a GPU counts: those that share it share a case.
        """
        known: dict[Any, Sequence[float]] = {}
        rows = []
        for at in self._every(names):
            key = tuple(of_gpu(each) if name == "gpu" else each for name, each in at.items())
            if key not in known:
                case = None if at.get("held", 0) > at["stages"] else self.case(at)
                known[key] = () if case is None or case.misfit else worth(case)
            rows.append(known[key])
        nothing = [0.0] * max(map(len, rows))
        return [self._table(names, column) for column in zip(*(row or nothing for row in rows), strict=True)]

    def _every(self, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        if 2 * prod(len(self.axes[name]) for name in names) > MOST_BYTES:  # if every entry had one digit
            raise HybridLabError(TOO_MUCH)
        return (dict(zip(names, at, strict=True)) for at in product(*(self.axes[name].values() for name in names)))

    def _table(self, names: tuple[str, ...], found: Iterable[float]) -> Data:
        values = [int(each) if float(each).is_integer() else each for each in found]
        return {"axes": list(names), "sizes": [len(self.axes[name]) for name in names], "values": values}

    def exchange(self, at: Mapping[str, Any]) -> float:
        """Return the seconds that a microbatch travels between stages that are apart as ``reach`` says, 0 if no plan has such."""
        if not at["reach"]:
            return 0.0
        for stages, replicas in product(self.axes["stages"].values(), self.axes["replicas"].values()):
            case = self.case({**at, "stages": stages, "replicas": replicas})
            if case.reach == at["reach"] and not case.misfit:
                return short(case.time(must_fit=False).point_to_point)
        return 0.0


def joined(columns: Sequence[Data], name: str) -> Data:
    """Return tables over the same axes as one with a last axis ``name``, of which each is a value."""
    values = [each for row in zip(*(column["values"] for column in columns), strict=True) for each in row]
    return {"axes": [*columns[0]["axes"], name], "sizes": [*columns[0]["sizes"], len(columns)], "values": values}


def short(value: float) -> float:
    """Return a time with as many digits as a page needs."""
    return float(f"{value:.{DIGITS}g}")
