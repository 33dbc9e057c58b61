"""The search for a schedule for given times: the registry, a greedy scheduler, local search, and a solver for parts and for the whole."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.automatic.problem import OrderProblem, problem_of
from hybridlab.automatic.search import State, search_steps, work_plan
from hybridlab.bound import lower_bound
from hybridlab.bound.chains import capacity_of
from hybridlab.bound.exact import MOST_OPERATIONS
from hybridlab.checks import MOST_CELLS, counted, known_name, one_time, short_repr, true_or_false, whole_number
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.memory import activations_in, no_limit
from hybridlab.progress import Progress, checked_progress, with_progress
from hybridlab.schedule import Schedule
from hybridlab.simulation import latencies, simulate

NAME = "made for these times"
PLACEMENTS = ("any", "loop", "v")
MESSAGES = ("free", "ordered")  # a list of actions is for one order, and a search tries many


@dataclass(frozen=True, init=False, eq=False, repr=False)
class ScheduleForTimes(Schedule):
    """A schedule that :func:`schedule_for` has found, with a proven lower bound of its makespan.

    Parameters
    ----------
    makespan : float
        The makespan of the schedule with the given times, in the unit of the costs.
    bound : float
        A lower bound: every order with this memory and this number of chunks takes at least this time.
    proven : bool
        Whether the search has proven that no order is shorter than ``makespan``.
    summary : str
        A sentence about the end of the search. It names the parts for which the effort did not suffice, and a memory that is no limit.
    interrupted : bool
        Whether an interrupt (Ctrl-C) has ended the search.

    Raises
    ------
    HybridLabError
        Always, because only :func:`schedule_for` makes such a schedule.
    """

    makespan: float
    bound: float
    proven: bool
    summary: str
    interrupted: bool

    def __init__(self, *_: Any, **__: Any) -> None:
        raise HybridLabError("only schedule_for makes such a schedule: take Schedule, and simulate for its makespan", "wrong-type")

    @classmethod
    def from_slots(cls, *_: Any, **__: Any) -> Schedule:
        """Raise the error of every call: this method of Schedule would not call ``__init__``."""
        return cls()

    @property
    def gap(self) -> float:
        """The relative distance to the bound, makespan / bound - 1."""
        return self.makespan / self.bound - 1 if self.bound else 0.0


def schedule_for(
    costs: Costs,
    microbatches: int,
    memory: Any = None,
    *,
    chunks: int = 1,
    devices: int | None = None,
    placement: str = "any",
    split: bool = True,
    held_after: float = 1.0,
    messages: str = "free",
    seconds: float = 10.0,
    seed: int = 0,
    progress: Progress = None,
) -> ScheduleForTimes:
    """Return the schedule with the shortest makespan that the search finds for these times and this memory.

    The search has five parts: (1) it simulates all schedules of the registry that fit; (2) it runs a greedy scheduler, similar to that of
    Zero Bubble, with up to 240 policies; (3) it improves the best order by local search; if OR-tools is installed, (4) its solver orders
    the operations of one window of time after another anew, and (5) it looks for a shorter order of the whole step or for a proof that none
    exists. If several orders have the same makespan, the search takes the order with the shortest ``device_span``.

    The result has one copy of the weights. It is never longer than a schedule of the registry with one copy of the weights, the same number
    of chunks and no more memory; with ``split=False``, than such a schedule that splits no backward. (``summary`` says if the sizes were
    too large to simulate all of them.) The same arguments give the same schedule on every machine.

    Parameters
    ----------
    costs : Costs
        The measured times of each device or of each stage, for one setting. K devices with two chunks each need the times of 2K stages.
    microbatches : int
        Number of microbatches.
    memory : number, sequence of numbers, or Memory, optional
        The largest number of activations that a device may hold: one number for all devices, or one number for each device. The search
        counts activations as :attr:`Timeline.peak_activations` does. :class:`~hybridlab.Memory` counts in bytes. None means no limit.
    chunks : int
        Number of model chunks on each device, 1 or 2. With 2, the path of the stages visits every device twice.
    devices : int, optional
        Number of devices. Required if the costs are the same for all devices.
    placement : "any", "loop" or "v"
        How the path of the stages visits the devices with 2 chunks: both times in the same direction ("loop"), or once in each direction
        ("v"). With "any", the search tries both. With 1 chunk there is only one placement.
    split : bool
        Whether the search may split a backward into input gradient and weight gradient.
    held_after : float
        The part of an activation that a device still holds between the input gradient and the weight gradient, from 0 to 1. With a value
        below 1, the search counts fewer activations than :attr:`Timeline.peak_activations`, and does not use the solver.
    messages : "free" or "ordered"
        How messages run, as in :func:`~hybridlab.simulate`. With "ordered", all orders that the search finds are timed with messages in
        order, and the shortest of them comes back.
    seconds : float
        Effort of the search. The search counts its work instead of real time; one unit is about one second on one core. The schedules of
        the registry and the first policies come before the effort. They have a limit, too: at 64 devices with 512 microbatches they take
        up to four seconds.
    seed : int
        Seed of the local search.
    progress : bool or callable, optional
        True shows a progress bar immediately (needs tqdm), and False never shows a progress bar. None shows a progress bar after five
        seconds if tqdm is installed. A function is called as ``progress(done, total)``.

    Returns
    -------
    ScheduleForTimes
        The schedule. After an interrupt (Ctrl-C), the best schedule so far, with ``interrupted`` True.

    Raises
    ------
    HybridLabError
        The costs are no Costs (``wrong-type``), have several settings (``several-settings``), lack a link that the schedule needs
        (``no-link``), or contradict ``devices`` or ``chunks`` (``conflicting-arguments``, ``does-not-fit``); ``devices`` is missing
        (``missing-argument``); a number is none, is too small, too large or ``out-of-range``, as 3 chunks or a ``held_after`` above 1; one
        microbatch does not fit in the memory (``too-small``); the memory is of the wrong shape (``wrong-shape``) or NaN (``not-finite``);
        ``split`` is not True or False (``not-true-or-false``); ``placement`` or ``messages`` is an unknown name (``unknown-name``); or
        ``progress`` is none of the above (``wrong-type``).

    References
    ----------
    Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, arXiv 2401.10241, sec. 3 (the heuristic) and sec. 5.4 (memory limits).

    Examples
    --------
    >>> from hybridlab import build
    >>> costs = Costs(forward=10, backward=20, weight_share=0.6, p2p=5)
    >>> found = schedule_for(costs, 24, devices=8, memory=12, seconds=0)
    >>> simulate(build("zb-h1", 8, 24), costs).makespan, found.makespan, found.bound
    (902.0, 825.0, 825.0)
    """
    number, count = _devices(costs, chunks, devices), whole_number(microbatches, "microbatches")
    held, effort = one_time(held_after, "held_after"), one_time(seconds, "seconds")
    if held > 1:
        raise HybridLabError(f"held_after is a part of an activation, from 0 to 1, not {held:g}", "out-of-range")
    seed = whole_number(seed, "seed", at_least=0)
    checked_progress(progress)
    messages = known_name(messages, MESSAGES, "order of messages")
    templates = with_links(templates_of(number, count, chunks, true_or_false(split, "split"), placement), costs)
    templates = _usable(templates, lambda each: _capacity(each, memory, held))  # of unlike stages, two can be too much for one device
    problems = [problem_of(each, costs, _capacity(each, memory, held), held) for each in templates]
    no_solver = _no_solver(problems[0], costs, held, effort)
    plan = work_plan(problems, effort, not no_solver, messages)
    bounds = [float(lower_bound(each, without_pairs(each, costs), alive_in(memory, each, held))) for each in templates]
    states = with_progress(search_steps(problems, bounds, costs, plan, seed, messages), plan.steps, progress, unit="attempts")
    state, interrupted = next(states), False  # outside of ``try``: from the first state on, an interrupt can return a schedule
    try:
        for newer in states:
            state = newer
    except KeyboardInterrupt:
        interrupted = True
    return _best_schedule(problems, state, costs, no_solver, plan.left_out, interrupted, no_limit(memory, templates, count), messages)


def _devices(costs: Any, chunks: Any, devices: Any) -> int:
    """Return the number of devices, from the costs or from the argument ``devices``."""
    if not isinstance(costs, Costs):
        raise HybridLabError(f"a schedule is made for Costs, not for {short_repr(costs)}", "wrong-type")
    if costs.batch:
        raise HybridLabError(f"a schedule is made for one setting of costs, but these have settings {costs.batch}", "several-settings")
    if whole_number(chunks, "chunks") > 2:
        raise HybridLabError(f"a schedule is made with 1 or 2 chunks on a device, not {chunks}", "out-of-range")
    known = costs.devices
    if costs.stages is not None:
        known = costs.stages // chunks
        if costs.stages != chunks * (known if devices is None else whole_number(devices, "devices")):
            sizes = f"{counted(chunks, 'chunk')} on each of {devices} devices" if devices else f"{chunks} chunks on each device"
            raise HybridLabError(f"{sizes} do not fit: the times are for {counted(costs.stages, 'stage')}", "does-not-fit")
    number = known if devices is None else whole_number(devices, "devices")
    if number is None:
        message = "these costs are the same for all devices: give the number of devices, as in schedule_for(costs, 8, devices=4)"
        raise HybridLabError(message, "missing-argument")
    if known not in (None, number):
        raise HybridLabError(f"these costs are for {known} devices, not {number}: leave out the argument devices", "conflicting-arguments")
    return number


def templates_of(devices: int, microbatches: int, chunks: int, split: bool = True, placement: str = "any") -> list[Schedule]:
    """Return a simple schedule for each placement of 1 or 2 chunks. Only one microbatch is in the pipeline at a time."""
    chosen = known_name(placement, PLACEMENTS, "placement")
    stages = devices * chunks
    if 3 * stages * microbatches > MOST_CELLS:
        raise HybridLabError(f"{3 * stages * microbatches:,} operations are more than {MOST_CELLS:,} and do not fit in memory", "too-large")
    stage, path = np.arange(stages), tuple(range(devices))
    chain = np.stack([stage, 2 * stages - 1 - stage, 3 * stages - 1 - stage][: 2 + split])
    slots = chain[..., None] + 3 * stages * np.arange(microbatches)  # shape (2 or 3, stages, microbatches)
    twice = {"loop": path * 2, "v": path + path[::-1]}
    paths = [path] if chunks == 1 else [each for name, each in twice.items() if chosen in ("any", name)]
    return [Schedule.from_slots("one by one", slots, each) for each in paths]


def with_links(templates: list[Schedule], costs: Costs) -> list[Schedule]:
    """Return the templates for which the costs have the latency of every message. Raise an error if no template remains."""
    return _usable(templates, lambda each: latencies(each, costs))  # raises if two devices that exchange messages have no link


def _usable(templates: list[Schedule], check: Callable[[Schedule], Any]) -> list[Schedule]:
    """Return the templates for which ``check`` raises no error. If no template remains, raise the last error."""
    known, fault = [], None
    for template in templates:
        try:
            check(template)
            known.append(template)
        except HybridLabError as why:
            fault = why
    if fault is not None and not known:
        raise fault
    return known


def _capacity(template: Schedule, memory: Any, held: float) -> Floats:
    """Return the largest number of activations of whole devices that each device may hold, shape (devices,)."""
    if held < 1 and memory is not None:  # not rounded down, because parts of activations can fill the rest of the memory
        return np.minimum(activations_in(memory, template), float(template.microbatches))
    capacity: Floats = capacity_of(template, template.microbatches if memory is None else memory) / template.chunks
    return capacity


def _no_solver(problem: OrderProblem, costs: Costs, held: float, effort: float) -> str:
    """Return the reason why the solver cannot be used for a problem (empty if it can be used)."""
    if not effort:
        return "the solver was given no time"
    if problem.size > MOST_OPERATIONS:
        return f"{problem.size:,} operations are more than the {MOST_OPERATIONS:,} that the solver takes; it would need hours"
    if held < 1:
        return "the solver does not know activations of which a part is freed early"
    if problem.template.chunks > 1 and costs.overlap.any():
        return "the solver does not support overlapped pairs"
    return ""


def alive_in(memory: Any, schedule: Schedule, held_after: float) -> Any:
    """Return the memory for a lower bound: how many microbatches can have activations on each device at the same time.

    Every stored activation takes at least the part ``held_after`` of a whole activation.
    """
    if memory is None or held_after == 0:
        return schedule.microbatches
    return np.minimum(activations_in(memory, schedule) / held_after, schedule.microbatches)


def without_pairs(template: Schedule, costs: Costs) -> Costs:
    """Return costs without overlap, for which a lower bound also holds for orders with overlapped pairs."""
    if template.chunks == 1 or not costs.overlap.any():
        return costs
    # A pair saves at most overlap x min(F, B). So this function shortens every backward by this time. Then the two operations of a pair
    # can run one after the other and end no later, and a bound for orders without pairs also holds for orders with pairs.
    forward = costs.forward
    if costs.per != "device":  # the forward of a pair can be that of another stage or microbatch than the backward, so the longest counts
        forward = forward.max(axis=-1 if costs.per == ("device", "microbatch") else None, keepdims=True)
    shorter = np.maximum(costs.backward - costs.overlap * np.minimum(forward, costs.backward), 0.0)
    weight = np.minimum(costs.weight_gradient, shorter)
    share = np.divide(weight, shorter, out=np.zeros_like(shorter), where=shorter > 0)
    return replace(costs, backward=shorter, weight_share=share, overlap=np.zeros(1))


def _best_schedule(
    problems: Sequence[OrderProblem], state: State, costs: Costs, no_solver: str, left_out: str, interrupted: bool, note: str, messages: str
) -> ScheduleForTimes:
    """Return the best schedule of a search, with its bound and a sentence about the end of the search."""
    place, found = state.best
    schedule = found.schedule or problems[place].schedule(found.orders, NAME)
    makespan, proven = simulate(schedule, costs, messages=messages).makespan, state.proven()
    bound = makespan if proven else min(min(state.bounds), makespan)  # min, because rounding can raise a bound above the makespan
    above = f"no order is shorter than {bound:.6g}, and this one takes {makespan:.6g}, {makespan / bound - 1 if bound else 0:.1%} more"
    if proven:
        summary = "no order with this memory is shorter: this is proven"
    elif interrupted:
        summary = f"the search was interrupted, and this is the best order so far: {above}"
    else:
        reasons = "; ".join(filter(None, [left_out, no_solver or state.note or "the solver needs more time for a proof"]))
        summary = f"{reasons}: {above}"
    summary = "; ".join(filter(None, [summary, note]))
    result = object.__new__(ScheduleForTimes)  # without __init__, because the schedule is already validated
    values = {"makespan": makespan, "bound": bound, "proven": proven, "summary": summary, "interrupted": interrupted}
    result.__dict__.update(schedule.__dict__, **values)
    return result
