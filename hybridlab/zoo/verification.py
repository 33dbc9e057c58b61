"""The check of a record or of a schedule against an instance of the zoo: the clock computes the makespan, and the bound is proven again."""

from dataclasses import dataclass

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.zoo.fitting import checked_makespan, order_of
from hybridlab.zoo.reading import first_sentence
from hybridlab.zoo.solving import proven_bound, solve
from hybridlab.zoo.zoo_instance import ZooInstance, checked_instance
from hybridlab.zoo.zoo_record import Record

VERDICTS = ("closed", "new best", "equal", "worse", "refused")
LONGEST_PROOF = 600  # seconds of effort, so about ten minutes of one core


@dataclass(frozen=True)
class ZooVerdict:
    """What :func:`verify` says about an entry.

    Parameters
    ----------
    code : str
        ``"closed"``: it is proven that no order is shorter. ``"new best"``: the order is shorter, or the bound higher, than what is known.
        ``"equal"``: both are as known. ``"worse"``: the order is longer, or the bound lower, than what is known. ``"refused"``: something
        is wrong.
    sentence : str
        The reason, for a reader.
    makespan, bound : int or None
        The makespan that the clock computes and the bound that counts. None where they were not reached.
    """

    code: str
    sentence: str
    makespan: int | None = None
    bound: int | None = None

    @property
    def accepted(self) -> bool:
        """Whether the entry is right and no worse than what is known."""
        return self.code not in ("worse", "refused")


def verify(entry: Record | Schedule, instance: ZooInstance, known: Record | None = None, *, prove: bool = False) -> ZooVerdict:
    """Return whether a record or a schedule is right, and whether it is better than the ``known`` record.

    The check reads the sizes, the placement of the stages, the legality of the order, and the memory as
    :attr:`Timeline.peak_activations`, and computes the makespan with the clock. Then it checks the bound of a record by its reason:

    - "bound": :func:`~hybridlab.bound.lower_bound` must give this bound.
    - "solver": the bound counts if it is no higher than the proven bound of the ``known`` record. With ``prove``, it counts if our solver
      proves it again.
    - "claimed": the bound is only shown. It closes nothing.

    Parameters
    ----------
    entry : Record or Schedule
        What is checked. A schedule has no bound of its own.
    instance : ZooInstance
        The problem.
    known : Record, optional
        The best that is known, whose bound was checked when it came.
    prove : bool
        Whether our solver proves the bound of a solver again. This takes ten minutes at most.

    Returns
    -------
    ZooVerdict
        Nothing in a record or in a schedule raises an error.

    Raises
    ------
    HybridLabError
        The arguments are no record or schedule and no instance (``wrong-type``).

    Examples
    --------
    >>> from hybridlab import Schedule, build
    >>> from hybridlab.zoo import instance, record
    >>> problem, best = instance("even-4x8-m4"), record("even-4x8-m4")
    >>> verify(best, problem).sentence
    'closed: 270 us, and no order is shorter'
    >>> verify(build("1f1b", 4, 8), problem, best).sentence
    '60 us longer than the best known order, which takes 270 us'
    >>> verify(build("gpipe", 4, 8), problem, best).sentence
    'it holds 8 activations on device 0, more than 4'
    """
    checked_instance(instance)
    if not isinstance(entry, (Record, Schedule)) or not isinstance(known, (Record, type(None))):
        raise HybridLabError(f"a Record or a Schedule is verified, and a Record is known, not {short_repr(entry)}", "wrong-type")
    least = _proven_bound(instance, known)
    try:
        if isinstance(entry, Schedule):
            return _compared(checked_makespan(entry, instance), least, "", instance, known)
        makespan = _makespan_of(entry, instance)
        bound, note = _counting(entry, instance, known, prove)
    except HybridLabError as why:
        return ZooVerdict("refused", first_sentence(why))
    low = _too_low(entry, least, known)
    return ZooVerdict("worse", low, makespan, least) if low else _compared(makespan, max(bound, least), note, instance, known)


def _makespan_of(record: Record, instance: ZooInstance) -> int:
    """Return the makespan of a record if the clock computes the same."""
    if record.instance != instance.name:
        raise HybridLabError(f"the record is of the instance {short_repr(record.instance)}, not of {instance.name!r}", "does-not-fit")
    words = sum(len(line.split()) for line in record.order)
    if words > instance.operations:  # before the text is parsed, because a long one takes time
        raise HybridLabError(f"order has {words:,} words, but {instance.name} has at most {instance.operations:,} operations", "too-large")
    if order_of(record.schedule) != record.order:
        message = "order must have only operations, with single spaces between, as hybridlab zoo record writes it"
        raise HybridLabError(message, "not-text")
    makespan = checked_makespan(record.schedule, instance)
    if makespan != record.makespan:
        raise HybridLabError(f"makespan says {record.makespan:,}, but the clock computes {makespan:,} for this order", "does-not-fit")
    return makespan


def _proven_bound(instance: ZooInstance, known: Record | None) -> int:
    """Return the highest bound that is proven without the entry."""
    return max(instance.bound, known.bound if known and _is_proven(known) else 0)


def _is_proven(record: Record) -> bool:
    return record.proven.reason != "claimed"


def _counting(record: Record, instance: ZooInstance, known: Record | None, prove: bool) -> tuple[int, str]:
    """Return the bound of a record that counts, and a note about it. Raise an error if the bound cannot be right."""
    for makespan, whose in ((record.makespan, "the order of the record"), (known.makespan if known else record.bound, "a known order")):
        if record.bound > makespan:
            raise HybridLabError(f"bound says {record.bound:,}, but {whose} takes {makespan:,}", "does-not-fit")
    if record.proven.reason == "claimed":
        return 0, f", and a bound of {record.bound:,} is claimed"
    if record.proven.reason == "bound":
        if instance.bound < record.bound:
            raise HybridLabError(f"bound says {record.bound:,}, but lower_bound proves only {instance.bound:,}", "does-not-fit")
    elif prove:
        proven = _proven_again(record, instance)
        if proven < record.bound:
            message = f"bound says {record.bound:,}, but our solver proves only {proven:,} in {LONGEST_PROOF // 60} minutes"
            raise HybridLabError(f"{message}: send it as claimed, with its source", "no-proof")
    elif record.bound > _proven_bound(instance, known):
        return 0, f"; the solver's bound of {record.bound:,} counts when our solver proves it again: hybridlab zoo verify --prove"
    return record.bound, ""


def _too_low(record: Record, least: int, known: Record | None) -> str:
    """Return a sentence if the bound of a record is lower than what is proven. A claimed bound must be higher."""
    claimed = not _is_proven(record)
    needed = least + 1 if claimed else known.bound if known and _is_proven(known) else 0
    if record.bound >= needed:
        return ""
    return f"its bound of {record.bound:,} is {'only claimed, and no higher than' if claimed else 'below'} the proven bound of {least:,}"


def _proven_again(record: Record, instance: ZooInstance) -> int:
    """Return the bound that our solver proves: first with the effort of the record, then with what is left of ten minutes."""
    bound, left = instance.bound, LONGEST_PROOF
    for effort in (min(record.proven.effort or 1, LONGEST_PROOF), LONGEST_PROOF):
        if bound < record.bound and left > 0:
            bound = max(bound, proven_bound(instance, solve(instance, min(effort, left), seed=record.proven.seed or 0)))
            left -= effort
    return bound


def _compared(makespan: int, bound: int, note: str, instance: ZooInstance, known: Record | None) -> ZooVerdict:
    """Return the verdict about an order that is right, with the bound that counts, beside what is known."""
    unit = f" {instance.unit}" if instance.unit else ""
    closed = makespan <= bound
    rest = f"{makespan:,}{unit}, and {'no order is shorter' if closed else f'the bound is {bound:,}{unit}'}{note}"
    longer = makespan - known.makespan if known else 0
    if known and longer > 0:
        sentence = f"{longer:,}{unit} longer than the best known order, which takes {known.makespan:,}{unit}"
        return ZooVerdict("worse", sentence, makespan, bound)
    if longer < 0:
        return ZooVerdict("new best", f"new best, {-longer:,}{unit} shorter: {rest}", makespan, bound)
    if closed:
        return ZooVerdict("closed", f"closed: {rest}", makespan, bound)
    if known and bound > known.bound:
        return ZooVerdict("new best", f"new bound, {bound - known.bound:,}{unit} higher: {rest}", makespan, bound)
    return (
        ZooVerdict("equal", f"equal to the best known order: {rest}", makespan, bound)
        if known
        else ZooVerdict("new best", f"new: {rest}", makespan, bound)
    )
