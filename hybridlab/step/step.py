"""A training step of a whole mesh: its times, its timeline, and the spans of its messages, rings and optimisers."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridlab.arrays import Floats, Frozen, Ints, readonly
from hybridlab.checks import in_a_second, one_time, short_repr, true_or_false, whole_number
from hybridlab.collectives import Link
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.mesh import Mesh
from hybridlab.schedule import Operations, Schedule
from hybridlab.simulation import latencies, simulate
from hybridlab.step.replicas import costs_of_all, holders, replicate
from hybridlab.timeline import Timeline
from hybridlab.timeline.spans import ALL_GATHER, MOST_SPANS, OPTIMISER, RECEIVE, REDUCE_SCATTER, SEND, Spans, join_spans
from hybridlab.wire import FP16, WireFormat

BYTES_PER_GRADIENT = 2  # bytes of the gradient of one parameter, in mixed-precision training


@dataclass(frozen=True, eq=False, repr=False)
class HybridStep(Frozen):
    """One training step of all ranks. :func:`hybrid_step` returns this object. Times are in the unit of the costs.

    Attributes
    ----------
    timeline : Timeline
        The operations, messages, ring hops and optimiser of each rank.
    mesh : Mesh
        The ranks.
    all_reduce_time : float
        The time that the rings of one device take, one after the other.
    exposed_communication : float, or array of shape (settings...)
        The difference between the end of the step and the end of the step if the rings took no time.
    single_device_time : float, or array of shape (settings...)
        The time that a single device with one copy of the weights would take for the same work. The device runs all operations of all
        replicas, with the same overlapped pairs. It runs the optimisers of the K devices of one pipeline.
    """

    timeline: Timeline
    mesh: Mesh
    all_reduce_time: float
    exposed_communication: Any
    single_device_time: Any

    @property
    def unit(self) -> str | None:
        """The unit of all times: "s", "ms", "us", or None for time slots without a length."""
        return self.timeline.unit

    @property
    def makespan(self) -> Any:
        """Time of the whole step: a float, or an array of shape (settings...)."""
        return self.timeline.makespan

    @property
    def speedup(self) -> Any:
        """``single_device_time`` divided by the time of the step. 0 if the step takes no time."""
        return _ratio(self.single_device_time, self.makespan)

    @property
    def efficiency(self) -> Any:
        """Speedup divided by the number of devices. In :func:`predict`, efficiency means a share of the peak FLOP/s."""
        return self.speedup / self.mesh.size

    @property
    def communication_share(self) -> Any:
        """Exposed communication divided by the time of the step. 0 if the step takes no time."""
        return _ratio(self.exposed_communication, self.makespan)

    @property
    def peak_activations(self) -> Floats:
        """Peak activations of each rank, shape (settings..., ranks). The unit is the activation of one microbatch on a whole device."""
        return self.timeline.peak_activations

    def __repr__(self) -> str:
        figures = f"makespan {self.makespan:g}, speedup {self.speedup:.2f}" if isinstance(self.makespan, float) else "several settings"
        return f"<HybridStep of {self.timeline.schedule!r}: {figures}>"


def hybrid_step(
    schedule: Schedule,
    costs: Costs,
    replicas: int,
    *,
    ring_step: float | None = None,
    link: Link | None = None,
    gradient_bytes: float | None = None,
    wire: WireFormat = FP16,
    overlap: bool = False,
    optimiser: float = 0.0,
) -> HybridStep:
    """Return one training step: the pipelines of all replicas, a ring all-reduce for the gradients of each stage, and the optimisers.

    The ring of a stage joins the devices that hold this stage, one in each of D replicas. The ring has 2(D-1) steps. In each step, every
    rank sends one of D chunks of the gradients. If a schedule has two copies of the weights, the ring joins both copies in all replicas,
    so it has 2D ranks. A device then takes part in two rings for each of its model chunks. After its last ring, a device runs its
    optimiser.

    The rings of a device run one after another. All devices run their rings in the same order of stages, so there is no deadlock. A stage
    comes earlier in this order if its last backward has a lower position in the order of its device. If several devices hold a stage, the
    highest of their positions counts.

    A ring step takes the time ``ring_step``, or a time computed from ``link`` and ``gradient_bytes``. If none of the three is given, a ring
    step takes no time. ``ring_step``, ``gradient_bytes`` and ``optimiser`` are for one copy of the weights. A device with two copies sends
    twice as many gradients, and its optimiser takes twice as long.

    Parameters
    ----------
    schedule : Schedule
        The schedule of one pipeline of K devices.
    costs : Costs
        The costs of one pipeline, or of all K x D ranks.
    replicas : int
        The number of pipelines, D.
    ring_step : float, optional
        Time of one ring step for all gradients of one device, in the unit of the costs. With v model chunks, each has its own ring, and a
        step of such a ring takes 1/v of ``ring_step``.
    link : Link, optional
        The link between ranks of a ring. A step takes latency + bytes / bandwidth. The bytes are those of the largest chunk of gradients.
    gradient_bytes : float, optional
        Bytes that the gradients take in the memory of one device, 2 for each parameter.
    wire : WireFormat
        The format in which gradients travel over ``link``. The default, FP16, has 2 bytes for each parameter, as ``gradient_bytes`` has.
    overlap : bool
        Whether rings and operations overlap. The ``overlap`` of :class:`Costs`, from 0 to 1, is that of a forward and a backward. False:
        all rings wait until the pipelines of all replicas have ended. True: the ring of a stage waits only until all its devices have ended
        two things: their last backward (B or W) of this stage, and their earlier rings. Then operations and rings can run at the same time.
    optimiser : float
        Time of the optimiser for all weights of a device, in the unit of the costs.

    Returns
    -------
    HybridStep
        The timeline of all ranks, and measures such as the speedup.

    Raises
    ------
    HybridLabError
        An argument has the wrong type; ``replicas`` is not a whole number of at least 1; ``ring_step`` is given together with ``link`` or
        ``gradient_bytes``; only one of ``link`` and ``gradient_bytes`` is given; ``gradient_bytes`` is not an even whole number; ``link``
        is given but the costs have no unit; a time is negative or infinite; the costs are neither for one pipeline nor for all ranks; one
        device has two copies of a stage; or the step does not fit in memory.

    References
    ----------
    Order of the phases: Narayanan et al., arXiv 2104.04473. Rings over two copies of the weights: Li and Hoefler, arXiv 2107.06925.

    Examples
    --------
    >>> from hybridlab.schedules import build
    >>> step = hybrid_step(build("1f1b", 2, 8), Costs(forward=50, backward=80), replicas=2, ring_step=20)
    >>> step.makespan, step.all_reduce_time, round(step.speedup, 2)
    (1210.0, 40.0, 3.44)
    """
    if not isinstance(schedule, Schedule) or not isinstance(costs, Costs):
        raise HybridLabError(
            f"hybrid_step takes the Schedule of one pipeline and Costs, not {short_repr(schedule)} and {short_repr(costs)}", "wrong-type"
        )
    overlap = true_or_false(overlap, "overlap")
    mesh = Mesh(schedule.devices, replicas)
    update = one_time(optimiser, "optimiser")
    ranks = mesh.replicas * schedule.copies  # number of ranks in a ring
    # Number of spans: two for each message, 2 (ranks - 1) hops for each rank of each ring, one optimiser for each rank of the mesh.
    count = 2 * (mesh.replicas * int(schedule.messages.sum()) + ranks * (ranks - 1) * schedule.stages) + mesh.size
    if count * math.prod(costs.batch) > MOST_SPANS:
        message = f"a step of {count:,} messages and hops does not fit in memory: take fewer replicas or settings"
        raise HybridLabError(message, "too-large")
    hop, nbytes = _ring_step(schedule.chunks, ranks, ring_step, link, gradient_bytes, wire, costs.unit)
    replicated, holder = replicate(schedule, mesh.replicas), holders(schedule, mesh.replicas)
    costs = costs_of_all(costs, mesh)
    run = simulate(replicated, costs)
    edges, free_edges = (
        ring_times(run, holder, each, overlap) for each in (hop, 0.0)
    )  # the times of the real rings, and of rings that take no time
    # stages 0 to K-1 are chunk 0 of the devices, stages K to 2K-1 chunk 1, and so on
    stage_bytes = nbytes[np.arange(schedule.stages) // mesh.stages]
    hops = hop_spans(edges, holder, ring_order(replicated), stage_bytes)
    spans = join_spans(*message_spans(run, costs), *hops, optimiser_spans(edges, holder, schedule.copies * update))
    exposed = edges[..., -1].max(axis=-1) - free_edges[..., -1].max(axis=-1)
    single = run.busy.sum(axis=-1) + mesh.stages * update
    timeline = Timeline(replicated, run.start, run.end, spans, run.unit)
    all_reduce_time = 2 * (ranks - 1) * hop * schedule.chunks * schedule.copies
    return HybridStep(timeline, mesh, all_reduce_time, _float_or_array(exposed), _float_or_array(single))


def ring_order(schedule: Operations) -> Ints:
    """Return the stages in the order in which their rings run, shape (stages,).

    Stages are sorted by the position of their last backward in the order of the device that runs it. If several devices hold a stage,
    the highest position counts. Stages with equal positions are sorted by number. Slots are not used, because schedules with equal
    orders can have different slots.
    """
    place = np.arange(schedule.kind.size) - schedule.first[schedule.device]
    last = np.zeros(schedule.stages, dtype=np.intp)
    np.maximum.at(last, schedule.stage, place)  # the last operation of a stage is a backward or a weight gradient
    return np.argsort(last, kind="stable")


def ring_times(run: Timeline, holder: Ints, hop: float, overlap: bool) -> Floats:
    """Return the start of each ring and the end of each of its steps.

    A ring starts when its gradients are complete and all its ranks have finished their earlier rings. All ranks run their rings in the
    order of :func:`ring_order`. So there is no deadlock: the first unfinished ring in this order never waits for another ring.

    Parameters
    ----------
    run : Timeline
        The operations of all ranks.
    holder : array of int, shape (stages, ranks of a ring)
        The ranks of the ring of each stage.
    hop : float
        Time of a step.
    overlap : bool
        Whether a ring may start before all operations of the step have ended.

    Returns
    -------
    array of float, shape (settings..., stages, steps + 1)
        On the last axis, entry 0 is the start of the ring. Entry s is the end of step number s, counted from 1.
    """
    settings, schedule = run.end.shape[:-1], run.schedule
    ready = np.full((schedule.stages, *settings), -np.inf)
    if overlap:
        np.maximum.at(ready, schedule.stage, np.moveaxis(run.end, -1, 0))
    else:
        ready[:] = run.end.max(axis=-1)
    steps = 2 * (holder.shape[1] - 1)
    done = np.full((schedule.devices, *settings), -np.inf)
    for stage in ring_order(schedule).tolist():
        ready[stage] = np.maximum(ready[stage], done[holder[stage]].max(axis=0))
        done[holder[stage]] = ready[stage] + hop * steps  # a rank runs one ring at a time
    edges: Floats = np.moveaxis(ready, 0, -1)[..., None] + hop * np.arange(steps + 1)
    return edges


def message_spans(run: Timeline, costs: Costs) -> tuple[Spans, Spans]:
    """Return the sends and the receives of all messages between devices. ``costs`` must be for all devices of ``run``."""
    schedule = run.schedule
    needs = np.flatnonzero(schedule.crosses)
    row = schedule.source[needs]
    sender, receiver = readonly(schedule.device[row]), readonly(schedule.device[needs])
    start = readonly(run.end[..., row])
    end = readonly(start + latencies(schedule, costs)[..., needs])
    stage, microbatch = readonly(schedule.stage[row]), readonly(schedule.microbatch[row])

    def spans(kind: int, device: Ints, peer: Ints) -> Spans:
        return Spans(readonly(np.full(row.size, kind)), device, start, end, stage, microbatch, peer=peer, row=readonly(row))

    # sends are sorted by sender, receives by receiver
    return spans(SEND, sender, receiver).where(np.argsort(row, kind="stable")), spans(RECEIVE, receiver, sender)


def hop_spans(edges: Floats, holder: Ints, order: Ints, nbytes: Ints) -> tuple[Spans, Spans]:
    """Return the hops of all rings: first those of the reduce-scatters, then those of the all-gathers.

    In both tables the spans are sorted by rank, then by the position of the ring in ``order``. Chunks of gradients have the same numbers
    as in ``ring_all_reduce``.

    Parameters
    ----------
    edges : array of float, shape (settings..., stages, steps + 1)
        The result of :func:`ring_times`.
    holder : array of int, shape (stages, ranks of a ring)
        The ranks of the ring of each stage.
    order : array of int, shape (stages,)
        The stages in the order in which their rings run.
    nbytes : array of int, shape (stages, ranks of a ring)
        The bytes of each chunk of gradients, or -1 if they are not known.
    """
    ranks, hops = holder.shape[1], holder.shape[1] - 1
    # ``turn`` and ``place`` have one entry for each rank of each ring, sorted by rank. ``turn`` is the position of the ring in ``order``.
    # ``place`` is the position of the rank in the ring.
    turn, place = np.divmod(np.argsort(holder[order], axis=None, kind="stable")[:, None], ranks)
    stage, step = order[turn], np.arange(hops)

    def phase(kind: int, first: int) -> Spans:
        chunk = (place + (kind == ALL_GATHER) - step) % ranks
        columns = {"device": holder[stage, place], "stage": stage, "step": step, "chunk": chunk}
        columns |= {"peer": holder[stage, (place + 1) % ranks], "nbytes": nbytes[stage, chunk]}
        flat = {name: readonly(np.broadcast_to(column, chunk.shape).ravel()) for name, column in columns.items()}
        at = first + step
        start, end = (readonly(edges[..., stage, each].reshape(*edges.shape[:-2], -1)) for each in (at, at + 1))
        return Spans(readonly(np.full(chunk.size, kind)), start=start, end=end, **flat)

    return phase(REDUCE_SCATTER, 0), phase(ALL_GATHER, hops)


def optimiser_spans(edges: Floats, holder: Ints, update: float) -> Spans:
    """Return one span for the optimiser of each rank. It starts when the rank's last ring has ended, and takes the time ``update``."""
    ranks = np.arange(holder.max() + 1)
    done = np.full((ranks.size, *edges.shape[:-2]), -np.inf)
    # All ranks of a ring end together, so one value for each ring is broadcast to its ranks: shape (stages, 1, settings...).
    np.maximum.at(done, holder, np.moveaxis(edges[..., -1], -1, 0)[:, None])
    start = readonly(np.moveaxis(done, 0, -1))
    return Spans(readonly(np.full(ranks.size, OPTIMISER)), readonly(ranks), start, readonly(start + update))


def _ring_step(
    chunks: int, ranks: int, ring_step: Any, link: Link | None, gradient_bytes: Any, wire: WireFormat, unit: str | None
) -> tuple[float, Ints]:
    """Return the time of one step of one ring, and the bytes of each message, shape (model chunks, ranks). -1 if they are not known."""
    if not isinstance(wire, WireFormat):
        raise HybridLabError(f"wire must be a WireFormat, such as FP16, not {short_repr(wire)}", "wrong-type")
    if ring_step is not None and (link is not None or gradient_bytes is not None):
        raise HybridLabError(
            "give ring_step, or link and gradient_bytes, but not both: each sets the time of a ring step", "conflicting-arguments"
        )
    if (link is None) != (gradient_bytes is None):
        missing = "gradient_bytes" if gradient_bytes is None else "link"
        raise HybridLabError(
            f"{missing} is missing: a ring step takes latency + bytes / bandwidth, so give both link and gradient_bytes",
            "missing-argument",
        )
    if link is None:
        hop = 0.0 if ring_step is None else one_time(ring_step, "ring_step")
        return hop / chunks, np.full((chunks, ranks), -1)
    if not isinstance(link, Link):
        raise HybridLabError(f"link must be a Link, such as Link(latency=5e-6, bandwidth=25e9), not {short_repr(link)}", "wrong-type")
    if isinstance(gradient_bytes, (float, np.floating)) and gradient_bytes.is_integer():
        gradient_bytes = int(gradient_bytes)  # a whole number may be written as a float, such as 1e9
    nbytes = whole_number(gradient_bytes, "gradient_bytes", at_least=0, at_most=2**60)
    if nbytes % BYTES_PER_GRADIENT:
        raise HybridLabError(f"gradient_bytes must be even, {BYTES_PER_GRADIENT} bytes for each parameter, not {nbytes}", "not-divisible")
    pieces = _split_sizes(_split_sizes(np.array(nbytes // BYTES_PER_GRADIENT), chunks), ranks)
    sizes, place = np.unique(pieces, return_inverse=True)  # there are at most two different sizes
    encoded = np.array([wire.nbytes(size) for size in sizes.tolist()])
    seconds = link.latency + float(encoded.max()) / link.bandwidth  # all ranks wait for the largest message
    return one_time(seconds * in_a_second(unit, "a link"), "a step of the ring"), encoded[place].reshape(pieces.shape)


def _split_sizes(sizes: Ints, parts: int) -> Ints:
    """Return the sizes of the pieces if ``numpy.array_split`` cuts arrays of these ``sizes``. The pieces are on a new last axis."""
    # the first pieces have one element more
    return sizes[..., None] // parts + (np.arange(parts) < sizes[..., None] % parts)


def _ratio(part: Any, whole: Any) -> Any:
    """Return ``part`` / ``whole``, or 0 where ``whole`` is 0."""
    return _float_or_array(np.divide(part, whole, out=np.zeros_like(np.asarray(whole, dtype=np.float64)), where=np.asarray(whole) > 0))


def _float_or_array(value: Any) -> Any:
    """Return ``value`` as a float if it is a single number, else unchanged."""
    return float(value) if np.ndim(value) == 0 else value
