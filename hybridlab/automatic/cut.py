"""The cut of a model into stages: where each stage begins, for given times of the layers, an order and the memory of the devices."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import counted, short_repr, whole_number
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.memory import SAME, Memory
from hybridlab.schedule import B, F, I, Schedule, W
from hybridlab.schedules import REGISTRY, build, known_schedule
from hybridlab.simulation import latencies, simulate
from hybridlab.tables import Row, Tabular

LAYERS = "Costs(forward=[1, 4, 4, 11], backward=[2, 8, 8, 22], per='stage')"
A_DEVICE = 4  # microbatches for each device, if the caller gives no number
MOST_LAYERS = 1_000  # the dynamic programming has tables of layers x layers
WORK = 4_000_000  # most simulated operations of a search: about a quarter of a second
AT_ONCE = 256  # most cuts that one step of a search simulates
MOVES = 100_000  # most moves x stages of one step, except that a step always moves single places
ROUNDS, PACE = 8, 40.0  # how often the weights in a bound change, and how fast
NEAR = 1e-12  # relative difference that counts as rounding

HAS = np.array([[1.0, 0, 0], [0, 1, 1], [0, 1, 0], [0, 0, 1]])  # the forwards, input gradients, weight gradients in F, B, I and W
Bools = npt.NDArray[np.bool_]
Table = Callable[[int], Floats]  # for a stage, the values for all its first layers and ends, shape (layers + 1, layers + 1)
Value = Callable[[Ints, float], Floats]  # the values of some cuts; infinity may stand for a value that is not below the number


@dataclass(frozen=True, repr=False)
class BestCut(Tabular):
    """A cut of a model into stages, and its time under a schedule. :func:`best_cut` makes it.

    Parameters
    ----------
    stage_layers : tuple of int
        Number of layers in each stage, in the order of the forward, as ``Plan(stage_layers=...)`` takes it. Every entry of the caller's
        list counts: :meth:`without` leaves out those that a plan does not count, such as the embedding.
    schedule : Schedule
        The order under which the makespan is computed.
    costs : Costs
        The times of each stage.
    makespan : float
        The makespan of the cut, in the unit of the costs.
    bound : float
        No cut that fits in the memory has a shorter makespan under this schedule.
    even : float
        The makespan of the cut with equal numbers of layers, whether it fits in the memory or not.
    least_load : float
        The smallest time that one microbatch can take in the busiest stage, over all cuts whose stages each fit in the memory.
    nbytes : tuple of float, optional
        The bytes that each device needs. None if no memory was given.
    """

    stage_layers: tuple[int, ...]
    schedule: Schedule
    costs: Costs
    makespan: float
    bound: float
    even: float
    least_load: float
    nbytes: tuple[float, ...] | None = None

    @property
    def unit(self) -> str | None:
        """The unit of the times."""
        return self.costs.unit

    @property
    def gap(self) -> float:
        """The relative distance to the bound, makespan / bound - 1. 0 means that no cut is better."""
        return self.makespan / self.bound - 1 if self.bound else 0.0

    @property
    def stage_times(self) -> tuple[float, ...]:
        """The time of one microbatch in each stage, forward plus backward."""
        return tuple((self.costs.forward + self.costs.backward).tolist())

    def without(self, *entries: int) -> tuple[int, ...]:
        """Return the number of layers in each stage, if some entries of the caller's list are no layers of the model.

        Parameters
        ----------
        *entries : int
            The places of these entries, from 0. A negative place counts from the end.

        Raises
        ------
        HybridLabError
            A place is not a whole number (``not-a-whole-number``), or is not in the list (``too-small``, ``too-large``).

        Examples
        --------
        >>> costs = Costs(forward=[1, 4, 4, 4, 4, 4, 4, 8], backward=[1, 8, 8, 8, 8, 8, 8, 16], per="stage")
        >>> cut = best_cut(costs, stages=4)
        >>> cut.stage_layers, cut.without(0, -1)
        ((3, 2, 2, 1), (2, 2, 2, 0))
        """
        total = sum(self.stage_layers)
        places = {whole_number(each, "a place", at_least=-total, at_most=total - 1) % total for each in entries}
        stages = np.searchsorted(np.cumsum(self.stage_layers), sorted(places), side="right")
        counts = np.subtract(self.stage_layers, np.bincount(stages, minlength=len(self.stage_layers)))
        return tuple(counts.tolist())

    def to_rows(self) -> list[Row]:
        """Return one dict for each stage."""
        firsts = np.cumsum((0, *self.stage_layers)).tolist()
        columns = zip(self.schedule.device_of, firsts, self.stage_layers, self.costs.forward, self.costs.backward, strict=False)
        return [
            {
                "stage": stage,
                "device": device,
                "first_layer": first,
                "layers": layers,
                "forward": float(forward),
                "backward": float(backward),
            }
            for stage, (device, first, layers, forward, backward) in enumerate(columns)
        ]

    def __repr__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        counts = " ".join(map(str, self.stage_layers))
        far = f"{self.gap:.1%} over the bound" if self.gap > NEAR else "and no cut is faster"
        return f"{counts}: {self.makespan:,.6g}{unit}, {far}; the even cut takes {self.even:,.6g}{unit}"


def best_cut(
    layers: Costs,
    stages: int,
    chunks: int = 1,
    *,
    schedule: str = "1f1b",
    memory: Memory | None = None,
    microbatches: int | None = None,
) -> BestCut:
    """Return the cut of a model into stages that has the shortest makespan under a schedule, of all cuts that the search finds.

    A stage is a row of neighbouring layers, at least one. If there are few cuts, all are simulated. Otherwise the search has two parts. (1)
    Dynamic programming finds the cut whose busiest stage is as fast as possible, and for 1 chunk the cut with the lowest bound of its
    makespan. (2) From these cuts and from the even cut, the search moves layers between stages, as long as the simulated makespan becomes
    shorter. The result is never slower than the even cut, if the even cut fits in the memory. The search uses no random numbers.

    Parameters
    ----------
    layers : Costs
        Measured or predicted times, one for each layer in the order of the forward: ``Costs(forward=[...], backward=[...], per="stage")``.
        Everything that takes time is a layer here: embedding, layers of unlike size, multi-token prediction, output layer, loss. ``p2p``
        and ``p2p_between`` are the latencies of messages between devices.
    stages : int
        Number of devices.
    chunks : int
        Number of stages on each device. Device d has the stages d, d + ``stages``, and so on, or those of the schedule's placement.
    schedule : str
        The name of a schedule with one copy of the weights. "1f1b" with several chunks is "interleaved".
    memory : Memory, optional
        The memory of each device. ``activation`` and ``weights`` have one amount for each layer, or one amount that every layer has. A
        device holds as many activations of its stages as the order of the schedule keeps there.
    microbatches : int, optional
        Number of microbatches in a step. By default 4 for each device.

    Returns
    -------
    BestCut
        The cut, with its makespan, a bound for all cuts, and the makespan of the even cut.

    Raises
    ------
    HybridLabError
        ``layers`` are no Costs with one time for each layer (``wrong-type``, ``several-settings``, ``does-not-fit``) or lack a link that
        the schedule needs (``no-link``), a number is none or too small, the schedule is unknown (``unknown-name``), the memory is no
        Memory (``wrong-type``), is for another number of layers (``does-not-fit``) or of devices (``wrong-shape``), or holds no cut
        (``too-small``). The message has the least memory that holds one; for several chunks, the least that the search finds.
    UnsupportedSize
        There are more stages than layers, or more than 1,000 layers (``too-few-layers``, ``too-large``), or the schedule does not exist
        for these sizes or has two copies of the weights (``unsupported-size``).

    References
    ----------
    Yeung et al., Balancing Pipeline Parallelism with Vocabulary Parallelism, MLSys 2025, arXiv 2411.05288: measured stages, and what
    embedding and output layer do to an even cut.

    Examples
    --------
    >>> embedding, layer, output = (1, 1), (4, 8), (9, 18)
    >>> forward, backward = zip(embedding, *[layer] * 14, output)
    >>> best_cut(Costs(forward=forward, backward=backward, per="stage"), stages=4)
    5 4 4 3: 962 ms, and no cut is faster; the even cut takes 1,142 ms
    """
    order, times = _order(layers, stages, chunks, schedule, microbatches), _layer_times(layers)
    task = _Task(order, layers, times, _room(memory, order, times.forward.size))
    every = task.every()
    cuts = _search(task) if every is None else every
    _refuse_too_small(task, cuts, proven=chunks == 1 or every is not None)
    cuts = cuts[task.fit(cuts)]
    makespans, busiest = task.makespans(cuts), np.diff(task.work[cuts]).max(axis=1)
    found = cuts[np.lexsort((busiest, makespans))[0]]
    makespan, even = (float(simulate(order, task.costs(places)).makespan) for places in (found, task.even()))
    if 0 < makespan - even < NEAR * makespan and task.fit(task.even()[None]).all():  # they differ by rounding
        found, makespan = task.even(), even
    bound = _bound(task, makespan) if every is None else makespan
    least_load, _ = _least(task.tables(lambda stage: task.load), np.maximum)
    needed = None if task.room is None else tuple(task.room.needed(found[None])[0].tolist())
    return BestCut(tuple(np.diff(found).tolist()), order, task.costs(found), makespan, bound, even, least_load, needed)


def _order(layers: Any, stages: Any, chunks: Any, schedule: Any, microbatches: Any) -> Schedule:
    """Return the order of the operations, after a check of the arguments."""
    if not isinstance(layers, Costs):
        raise HybridLabError(f"layers must be Costs with one time for each layer, as in {LAYERS}, not {short_repr(layers)}", "wrong-type")
    if layers.batch:
        raise HybridLabError(f"a cut is made for one setting of costs, but these have settings {layers.batch}", "several-settings")
    if layers.per not in ("device", "stage"):
        raise HybridLabError(f"layers have one time for each layer, as in {LAYERS}, but these times are per {layers.per}", "does-not-fit")
    count = max(layers.forward.size, layers.backward.size, layers.weight_share.size)
    devices, chunks = whole_number(stages, "stages"), whole_number(chunks, "chunks")
    if count < devices * chunks:
        message = f"{counted(count, 'layer')} cannot be cut into {counted(devices * chunks, 'stage')}, because each has at least one"
        raise UnsupportedSize(f"{message}: stages x chunks must be at most {count}", "too-few-layers")
    if count > MOST_LAYERS:
        raise UnsupportedSize(f"{count:,} layers are more than the {MOST_LAYERS:,} that a cut can have: join some of them", "too-large")
    name = known_schedule(schedule)
    if name == "1f1b" and chunks > 1:
        name = "interleaved"
    if REGISTRY[name].copies > 1:
        raise UnsupportedSize(
            f"{name} has {REGISTRY[name].copies} copies of the weights, and a cut is made for one copy", "unsupported-size"
        )
    number = A_DEVICE * devices if microbatches is None else whole_number(microbatches, "microbatches")
    return build(name, devices, number, chunks)


class _Times(NamedTuple):
    """The times of each layer, each of shape (layers,)."""

    forward: Floats
    backward: Floats
    weight_gradient: Floats


def _layer_times(layers: Costs) -> _Times:
    """Return the times of each layer, also of those that are given once for all."""
    forward, backward, weight = np.broadcast_arrays(layers.forward, layers.backward, layers.weight_gradient)
    return _Times(forward, backward, weight)


class _Room:
    """The memory of each device, and what the stages of a cut need of it."""

    def __init__(self, total: Floats, weights: Floats, activation: Floats, order: Schedule) -> None:
        self.total, self.weights, self.activation = total, _sums(weights), _sums(activation)
        self.device, owned = np.array(order.device_of), _owned(order)
        alive = np.diff(_running(order)[1:, :, ::2])[..., 0]  # activations that have gone, less those that have come
        # A device holds most after a forward that no other forward follows.
        rows = np.flatnonzero((order.kind == F) & (np.append(order.kind[1:], B) != F))
        points, place = np.unique(np.column_stack([order.device[rows], -alive[rows]]), axis=0), np.arange(order.devices)
        device = points[:, 0].astype(np.intp)
        self.first = np.searchsorted(device, place)  # the first row of ``kept`` of each device
        self.kept = np.zeros((device.size, order.stages))  # activations of each stage that its device holds at some point of its order
        self.kept[np.arange(device.size)[:, None], owned[device]] = points[:, 1:]
        self.most, self.slack = self.kept.max(axis=0), float(SAME * total.max())  # activations of each stage; bytes of rounding

    def needed(self, places: Ints) -> Floats:
        """Return the bytes that each device needs for some cuts, shape (cuts, devices)."""
        weights, activation = (np.diff(sums[places]) for sums in (self.weights, self.activation))
        held = np.maximum.reduceat(activation @ self.kept.T, self.first, axis=1)
        needed: Floats = held + weights @ (self.device[:, None] == np.arange(self.total.size))
        return needed

    def lacking(self, places: Ints) -> Floats:
        """Return the bytes that the device with the least room lacks for some cuts, shape (cuts,). Negative if it has room."""
        lacking: Floats = (self.needed(places) - self.total).max(axis=1)
        return lacking

    def of_stage(self, stage: int) -> Floats:
        """Return the bytes that a device lacks for one stage alone, for all first layers and ends of the stage."""
        needed = self.weights + self.most[stage] * self.activation
        lacking: Floats = needed - needed[:, None] - self.total[self.device[stage]]
        return lacking


def _room(memory: Any, order: Schedule, count: int) -> _Room | None:
    """Return the memory, after a check. None if there is no limit."""
    if memory is None:
        return None
    if not isinstance(memory, Memory):
        message = "memory must be a Memory with the bytes of each layer, as in Memory('80GB', activation=[...], weights=[...])"
        raise HybridLabError(f"{message}, not {short_repr(memory)}", "wrong-type")
    total, *amounts = (np.asarray(each, dtype=np.float64) for each in (memory.total, memory.weights, memory.activation))
    for name, amount in zip(("weights", "activation"), amounts, strict=True):
        if amount.size not in (1, count):
            message = f"{name} of memory must be one amount, or one for each of the {counted(count, 'layer')}"
            raise HybridLabError(f"{message}, not {amount.size}", "does-not-fit")
    if total.size not in (1, order.devices):
        message = f"total of memory must be one amount, or one for each of the {counted(order.devices, 'device')}"
        raise HybridLabError(f"{message}, not {total.size}", "wrong-shape")
    weights, activation = (np.broadcast_to(each.reshape(-1), (count,)) for each in amounts)
    return _Room(np.broadcast_to(total.reshape(-1), (order.devices,)), weights, activation, order)


def _sums(values: Floats) -> Floats:
    """Return the sums of the first 0, 1, 2, ... values."""
    return np.append(0.0, np.cumsum(values))


def _owned(order: Schedule) -> Ints:
    """Return the stages of each device in the order of the forward, shape (devices, chunks)."""
    return np.argsort(order.device_of, kind="stable").reshape(order.devices, order.chunks)


def _running(order: Schedule) -> Floats:
    """Return how many forwards, input gradients and weight gradients of each chunk come before each row, shape (rows + 1, chunks, 3).

    The numbers run on from device to device.
    """
    chunk, owned = np.empty(order.stages, dtype=np.intp), _owned(order)
    chunk[owned] = np.arange(order.chunks)
    running = np.zeros((order.kind.size + 1, order.chunks, 3))
    running[np.arange(1, order.kind.size + 1), chunk[order.stage]] = HAS[order.kind]
    return np.cumsum(running, axis=0)


class _Task:
    """What a search needs to know. A cut is an array of places: the first layer of each stage, and the number of all layers."""

    def __init__(self, order: Schedule, layers: Costs, times: _Times, room: _Room | None) -> None:
        self.order, self.layers, self.times, self.room = order, layers, times, room
        forward, backward, weight = self.sums = _Times(*map(_sums, times))
        self.count, self.work = times.forward.size, forward + backward
        self.parts = np.stack([forward, backward - weight, weight])  # as _running has them, shape (3, layers + 1)
        self.load = self.work - self.work[:, None]  # the time of a stage, for all its first layers and ends
        self.kept = 1 - float(layers.overlap[0]) / 2 if order.pairs.size else 1.0  # the part of the work that overlapped pairs leave
        self.device = np.array(order.device_of)
        self.most = WORK // order.kind.size  # cuts that may be simulated
        self.chains = _chains(self)

    def every(self) -> Ints | None:
        """Return all cuts, or None if they are too many to be simulated."""
        inside = self.order.stages - 1
        number = math.comb(self.count - 1, inside)
        if number > self.most:
            return None
        places = np.full((number, inside + 2), self.count)
        places[:, 0] = 0
        places[:, 1:-1] = np.array(list(combinations(range(1, self.count), inside))).reshape(number, inside)
        return places

    def even(self) -> Ints:
        """Return the cut with equal numbers of layers, the first stages with one more if they cannot be equal."""
        return np.cumsum([0, *(part.size for part in np.array_split(np.empty(self.count), self.order.stages))])

    def costs(self, places: Ints) -> Costs:
        """Return the times of the stages of a cut, or of several cuts, shape (cuts, stages + 1)."""
        if places.ndim == 1:  # exact sums, because differences of long sums have rounding errors
            forward, backward, weight = (np.add.reduceat(each, places[:-1]) for each in self.times)
        else:
            forward, backward, weight = (np.maximum(np.diff(each[places]), 0.0) for each in self.sums)
        share = np.minimum(np.divide(weight, backward, out=np.zeros_like(weight), where=backward > 0), 1.0)
        return replace(self.layers, forward=forward, backward=backward, weight_share=share, per="stage")

    def makespans(self, places: Ints) -> Floats:
        """Return the makespan of each cut, shape (cuts,)."""
        step = max(1, min(AT_ONCE, self.most))
        groups = [places[low : low + step] for low in range(0, places.shape[0], step)]
        return np.concatenate([simulate(self.order, self.costs(each)).makespan for each in groups])

    def floors(self, places: Ints) -> Floats:
        """Return the length of the longest chain of each cut, shape (cuts,). The makespan is at least that."""
        # what chains have of the stages of their own device, without a product of matrices, which starts threads
        own = np.einsum("csjk,knsj->cns", self.chains.own, np.diff(self.parts[:, places])[:, :, _owned(self.order)[self.device]])
        own += self.chains.messages[:, None] + (self.chains.way @ self.parts)[places[:, self.device]]
        beyond = self.chains.beyond @ self.parts
        own[1:] += beyond[-1] - beyond[places[:, 1:]]
        floors: Floats = own.max(axis=(0, 2))
        return floors

    def fit(self, places: Ints) -> Bools:
        """Return whether each cut fits in the memory, shape (cuts,)."""
        if self.room is None:
            return np.ones(places.shape[0], dtype=np.bool_)
        fit: Bools = self.room.lacking(places) <= self.room.slack
        return fit

    def tables(self, values: Table) -> Iterator[Floats]:
        """Yield the values of each stage, infinite where the stage alone does not fit in the memory."""
        for stage in range(self.order.stages):
            table = values(stage)
            yield table if self.room is None else np.where(self.room.of_stage(stage) > self.room.slack, np.inf, table)


class _Chains(NamedTuple):
    """Chains of operations and messages that run one after another in every cut. Each stage has the same number of them.

    In the first chain, the device of the stage runs all its operations. In each of the others, the device runs what comes up to the forward
    of one microbatch; this microbatch goes on to the last stage and back; the device runs the backward and what comes after it. Before the
    first operation of a device a microbatch must come to it, and the gradient of its last full backward must go back to stage 0.

    The last axis is for forwards, input gradients and weight gradients.
    """

    own: Floats  # how often each stage of the device runs in each chain of each stage, shape (chains, stages, chunks, 3)
    way: Floats  # what runs once in each of the stages 0 to d - 1, before and after all that device d runs, shape (3,)
    beyond: Floats  # what runs once in each stage after the chain's own, except in the first chain, shape (3,)
    messages: Floats  # the time of the messages, shape (chains, stages)

    def uses(self, order: Schedule) -> Floats:
        """Return how often each stage runs in each chain of each stage, shape (chains, stages, stages, 3)."""
        stage, device = np.arange(order.stages), np.array(order.device_of)
        uses = np.zeros((*self.messages.shape, stage.size, 3))
        uses += (stage < device[:, None])[..., None] * self.way
        uses[1:] += (stage > stage[:, None])[..., None] * self.beyond
        uses[:, stage[:, None], _owned(order)[device]] += self.own
        return uses


def _chains(task: _Task) -> _Chains:
    """Return the chains of a task. With overlapped pairs, only the first chain of each stage."""
    order, stages = task.order, task.order.stages
    forward, backward = np.flatnonzero(order.kind == F), np.flatnonzero((order.kind == B) | (order.kind == I))
    into, back = np.zeros(stages), np.zeros(stages)  # the latency of the message that each stage needs
    wait = latencies(order, task.costs(task.even()))
    into[order.stage[forward]], back[order.stage[backward]] = wait[forward], wait[backward]
    there, and_back = _sums(into[1:]), _sums(back[:-1])  # from stage 0 to each stage, and back
    rows = np.zeros((2, stages, order.microbatches), dtype=np.intp)
    rows[0, order.stage[forward], order.microbatch[forward]] = forward
    rows[1, order.stage[backward], order.microbatch[backward]] = backward
    running, bounds = _running(order), np.append(order.first, order.kind.size)
    before, after = running[bounds[task.device]], running[bounds[task.device + 1]]
    split = bool((order.kind == W).any())
    messages = [there[task.device] + (0.0 if split else and_back[task.device])]
    own = [task.kept * (after - before)]
    for microbatch in (0, order.microbatches // 2, order.microbatches - 1) if task.kept == 1 else ():
        first, last = rows[:, :, microbatch]
        own.append(running[first + 1] - before + after - running[last])
        messages.append(messages[0] + there[-1] - there + and_back[-1] - and_back)
    way, beyond = np.array([1.0, not split, not split]), np.array([1.0, 1.0, not split])
    return _Chains(np.array(own), way, beyond, np.array(messages))


def _least(tables: Iterable[Floats], join: np.ufunc) -> tuple[float, Ints]:
    """Return the least joined value of a cut and the places of this cut, by dynamic programming. The value is infinite if there is no cut.

    Parameters
    ----------
    tables : iterable of Floats
        The values of each stage for all its first layers and ends, shape (layers + 1, layers + 1).
    join : np.ufunc
        ``np.maximum`` for the least largest value, ``np.add`` for the least sum.
    """
    chosen: list[Ints] = []
    for table in tables:
        if not chosen:
            best = np.full(table.shape[0], np.inf)
            best[0] = 0.0 if join is np.add else -np.inf
            empty = np.tri(best.size, dtype=np.bool_)  # [first layer, end]: no layer
        both = np.where(empty, np.inf, join(best[:, None], table))
        chosen.append(both.argmin(axis=0))
        best = both.min(axis=0)
    places = [best.size - 1]
    for firsts in reversed(chosen):
        places.append(int(firsts[places[-1]]))
    return float(best[-1]), np.array(places[::-1])


def _balanced(task: _Task, values: Table) -> list[Ints]:
    """Return one cut with the least largest value of a stage: the cut whose stages are most alike.

    The list is empty if each cut has a stage that does not fit in the memory.
    """
    least, _ = _least(task.tables(values), np.maximum)
    if math.isinf(least):
        return []
    near = (np.where(table <= least + NEAR * abs(least), task.load**2, np.inf) for table in task.tables(values))
    return [_least(near, np.add)[1]]


def _longest_chain(task: _Task) -> Table:
    """Return a function with the length of the longest chain of each stage. It holds for 1 chunk on each device."""
    chains = task.chains
    way, beyond = chains.way @ task.parts, chains.beyond @ task.parts  # of the first layers

    def longest(stage: int) -> Floats:
        tables = []
        for number, (own, messages) in enumerate(zip(chains.own[:, stage, 0] @ task.parts, chains.messages[:, stage], strict=True)):
            end = own + beyond[-1] - beyond if number else own
            tables.append(end + (way - own)[:, None] + messages)
        lengths: Floats = np.maximum.reduce(tables)
        return lengths

    return longest


def _starts(task: _Task) -> Ints:
    """Return the cuts at which the search begins, shape (cuts, stages + 1). They fit in the memory if the function finds any that do."""
    starts = [task.even(), *_balanced(task, lambda stage: task.load)]
    if task.order.chunks == 1:
        starts += _balanced(task, _longest_chain(task))
    if task.room is None:
        return np.unique(starts, axis=0)
    room = task.room
    starts.append(_least(map(room.of_stage, range(task.order.stages)), np.maximum)[1])
    starts += [_descended(each, lambda places, _: np.maximum(room.lacking(places), room.slack)) for each in starts]
    found = np.unique(starts, axis=0)
    fit = task.fit(found)
    return found[fit] if fit.any() else found


def _refuse_too_small(task: _Task, cuts: Ints, proven: bool) -> None:
    """Raise an error if none of the cuts fits in the memory. ``proven`` says whether one of them needs the least memory of all cuts."""
    room = task.room
    if room is None or task.fit(cuts).any():
        return
    lacking = float(room.lacking(cuts).min())
    if np.ptp(room.total) == 0:
        where, wanted = f" of {_in_words(room.total[0])}", _in_words(room.total[0] + lacking)
    else:
        where, wanted = "", f"{_in_words(lacking)} more"
    none, least = ("no cut fits", "would fit") if proven else ("the search finds no cut that fits", "it finds")
    raise HybridLabError(f"{none} in the memory{where}: the least that {least} is {wanted} on each device", "too-small")


def _in_words(nbytes: float) -> str:
    """Return a number of bytes with its unit, rounded up.

    >>> _in_words(21.3004e9), _in_words(12)
    ('21.301 GB', '0.012 kB')
    """
    size, unit = next((each for each in ((1e9, "GB"), (1e6, "MB")) if nbytes >= each[0]), (1e3, "kB"))
    return f"{math.ceil(nbytes / size * 1000 - SAME) / 1000:.12g} {unit}"


@cache
def _moves(stages: int) -> Ints:
    """Return the moves: each has 1 for some neighbouring places, and 0 for the others, shape (moves, stages + 1)."""
    place, widest = np.arange(stages + 1), min(stages - 1, 1 + MOVES // stages**2)
    moves = [(place >= first) & (place < first + width) for width in range(1, widest + 1) for first in range(1, stages - width + 1)]
    return np.array(moves, dtype=np.intp).reshape(-1, stages + 1)


def _descended(places: Ints, value: Value) -> Ints:
    """Return the cut that is reached from a cut by the best of all moves, again and again, as long as the value falls.

    A move makes one or several neighbouring stages begin a layer earlier, or a layer later.
    """
    best, moves = float(value(places[None], math.inf)[0]), _moves(places.size - 1)
    while True:
        near = np.concatenate([places + moves, places - moves])
        near = near[(np.diff(near) >= 1).all(axis=1)]
        values = np.append(value(near, best), np.inf)
        place = int(values.argmin())
        if not values[place] < best - NEAR * abs(best):
            return places
        places, best = near[place], float(values[place])


def _search(task: _Task) -> Ints:
    """Return cuts that the search reaches; one of them has the shortest makespan that it finds."""
    starts, left = _starts(task), task.most

    def floors(places: Ints, _: float) -> Floats:
        return np.where(task.fit(places), task.floors(places), np.inf)

    def makespans(places: Ints, below: float) -> Floats:
        nonlocal left
        found, floor = np.full(places.shape[0], np.inf), floors(places, below)
        able = np.argsort(floor, kind="stable")[: min(max(left, 1), AT_ONCE)]
        able = able[floor[able] < below]
        if able.size:
            found[able] = task.makespans(places[able])
        left -= able.size
        return found

    starts = np.unique([*starts, *(_descended(each, floors) for each in starts)], axis=0)
    firsts = starts[np.argsort(task.makespans(starts), kind="stable")]
    return np.array([_descended(each, makespans) if left > 0 else each for each in firsts])


def _bound(task: _Task, makespan: float) -> float:
    """Return a time that no cut beats, given the makespan of one cut.

    The makespan of a cut is at least the length of each chain, and so it is at least each mean of their lengths. Dynamic programming finds
    the least mean over all cuts. The weights of the chains in the mean start equal, and grow for chains that are long in the cut with the
    least mean. With 1 chunk, dynamic programming also finds the cut whose longest chain is shortest, and this bound is often higher.
    """
    bounds = [_least(task.tables(_longest_chain(task)), np.maximum)[0]] if task.order.chunks == 1 else [0.0]
    # the mean over the devices, shape (chains x chunks, stages, 3), and its messages
    every = (task.chains.uses(task.order), task.chains.messages)
    uses, messages = (each.reshape(-1, task.order.devices, *each.shape[2:]).mean(axis=1) for each in every)
    weights = np.full(messages.size, 1 / messages.size)
    too_long = task.kept * task.order.microbatches * task.load > makespan * (1 + NEAR)
    for _ in range(ROUNDS):
        sums = np.tensordot(weights, uses, axes=1) @ task.parts  # for each stage the part of the mean for its first layers
        parts = [np.where(too_long, np.inf, each - each[:, None]) for each in sums]
        least, places = _least(task.tables(parts.__getitem__), np.add)
        bounds.append(least + float(weights @ messages))
        lengths = np.einsum("csk,ks->c", uses, np.diff(task.parts[:, places])) + messages
        weights *= np.exp(PACE * (lengths - lengths.max()) / (makespan or 1.0))
        weights /= weights.sum()
    return min(max(bounds), makespan)
