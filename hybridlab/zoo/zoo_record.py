"""A record of the zoo: the best known order of an instance, the best known bound, and who found and who proved them."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hybridlab.schedule import Schedule
from hybridlab.zoo.reading import FORMAT, LARGEST_FILE, Fields, fields_of, within

REASONS = ("bound", "solver", "claimed")
DIFFICULTIES = ("at once", "easy", "hard", "open")
EASY = 10  # the most effort, in seconds of one core, of a proof that counts as easy
LATEST = 10**12  # no order of the zoo takes longer

NAMES = ("format", "instance", "makespan", "bound", "order", "found", "proven")
_FOUND = ("by", "date", "how", "source")
_PROVEN = ("by", "date", "reason", "program", "seed", "effort", "source")


@dataclass(frozen=True)
class FoundBy:
    """Who found an order: ``by`` whom, on which ``date``, ``how``, and the ``source`` that tells more (or None)."""

    by: str
    date: str
    how: str
    source: str | None


@dataclass(frozen=True)
class ProvenBy:
    """Who proved a bound.

    Parameters
    ----------
    by, date : str
        Who, and on which day.
    reason : "bound", "solver" or "claimed"
        How the bound can be checked: :func:`~hybridlab.bound.lower_bound` gives it; a solver has proven it, and ours proves it again; or a
        paper claims it, and nobody has checked it here.
    program : str or None
        The program of the proof, with its version. None if the bound is claimed.
    seed, effort : int or None
        The seed and the effort of the solver, in seconds of one core. None for the other reasons.
    source : str or None
        Where more is told. A claimed bound has a source.
    """

    by: str
    date: str
    reason: str
    program: str | None
    seed: int | None
    effort: int | None
    source: str | None


@dataclass(frozen=True)
class Record:
    """The best known order and the best known bound of an instance. :func:`read_record` makes it.

    Parameters
    ----------
    instance : str
        The name of the instance.
    makespan, bound : int
        The makespan of the order, and the makespan that no order can beat, in the unit of the instance.
    order : tuple of str
        The operations of each device in running order, one text for each device, such as "0F0 0I0 0W0".
    found : FoundBy
        Who found the order.
    proven : ProvenBy
        Who proved the bound.
    """

    instance: str
    makespan: int
    bound: int
    order: tuple[str, ...]
    found: FoundBy
    proven: ProvenBy

    @property
    def closed(self) -> bool:
        """Whether it is proven that no order is shorter. A claimed bound proves nothing."""
        return self.makespan <= self.bound and self.proven.reason != "claimed"

    @property
    def gap(self) -> float:
        """The relative distance of the makespan to the bound, makespan / bound - 1."""
        return self.makespan / self.bound - 1

    @property
    def difficulty(self) -> str:
        """How hard the proof is: "at once" (by a bound), "easy" (by a solver in 10 s), "hard" (it took longer), or "open"."""
        if not self.closed:
            return "open"
        if self.proven.reason == "bound":
            return "at once"
        return "easy" if (self.proven.effort or 0) <= EASY else "hard"

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule with this order.

        Raises
        ------
        InvalidSchedule, Deadlock
            The order cannot run.
        """
        return Schedule.parse("\n".join(self.order), self.instance)

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the JSON file, in their order."""
        mine = {name: getattr(self, name) for name in NAMES[1:]}
        return {"format": FORMAT, **mine, "order": list(self.order), "found": vars(self.found).copy(), "proven": vars(self.proven).copy()}

    def to_text(self) -> str:
        """Return the content of the JSON file, with a line for each device."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"


def read_record(source: Any) -> Record:
    """Return the record in a JSON file, or in a mapping with the fields of such a file. The order is not yet checked: see ``verify``.

    Parameters
    ----------
    source : path or mapping
        The file, at most 4 MB, or its fields.

    Raises
    ------
    HybridLabError
        A field is missing (``missing-key``), unknown (``unknown-key``), of another type (``not-text``, ``not-a-list``,
        ``not-a-whole-number``, ``not-a-date``, ``unknown-name``, ``wrong-type``), too small or too large (``too-small``, ``too-large``), or
        contradicts the reason (``conflicting-arguments``); or the file cannot be read, as in :func:`read_instance`.

    Examples
    --------
    >>> from hybridlab.zoo import record
    >>> best = record("even-2x4-m1")
    >>> read_record(best.to_json()) == best, best.makespan, best.bound, best.difficulty
    (True, 200, 200, 'at once')
    """
    given = fields_of(source, "the record")
    given.format()
    given.exactly(NAMES)
    return Record(
        instance=given.text("instance"),
        makespan=given.whole("makespan", 1, LATEST),
        bound=given.whole("bound", 1, LATEST),
        order=_order(given),
        found=_found(within(given, "found")),
        proven=_proven(within(given, "proven")),
    )


def _order(given: Fields) -> tuple[str, ...]:
    lines = given.values["order"]
    if not isinstance(lines, list) or not lines or not all(isinstance(line, str) for line in lines):
        given.fail("order must be a list with a text of operations for each device, such as ['0F0 0B0', '1F0 1B0']", "not-a-list")
    if not all(line.strip() and line.isprintable() for line in lines):
        given.fail("order must have one line of operations for each device, and none of them is empty", "not-a-list")
    if sum(map(len, lines)) > LARGEST_FILE:
        given.fail(f"order has more than {LARGEST_FILE:,} characters", "too-large")
    return tuple(lines)


def _found(given: Fields) -> FoundBy:
    given.exactly(_FOUND)
    return FoundBy(given.text("by"), given.day("date"), given.text("how"), given.text("source", optional=True))


def _proven(given: Fields) -> ProvenBy:
    given.exactly(_PROVEN)
    reason = given.one_of("reason", REASONS)
    solver, claimed = reason == "solver", reason == "claimed"
    for name in ("seed", "effort"):
        if not solver and given.values[name] is not None:
            given.fail(f"{name} belongs to the reason 'solver': with {reason!r} it is null", "conflicting-arguments")
    if claimed and given.values["program"] is not None:
        given.fail("program belongs to the reasons 'bound' and 'solver': with 'claimed' it is null", "conflicting-arguments")
    return ProvenBy(
        by=given.text("by"),
        date=given.day("date"),
        reason=reason,
        program=None if claimed else given.text("program"),
        seed=given.whole("seed", 0, 2**31 - 1) if solver else None,
        effort=given.whole("effort", 1, 10**7) if solver else None,
        source=given.text("source", optional=not claimed),
    )
