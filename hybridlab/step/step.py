"""One step of hybrid training: the pipelines of all replicas, a ring all-reduce for each stage, the optimiser."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridlab.arrays import Floats, Frozen, Ints
from hybridlab.checks import in_a_second, one_time, removed_arguments, short_repr, whole_number
from hybridlab.collectives import Link
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.mesh import Mesh
from hybridlab.schedule import Schedule
from hybridlab.simulation import simulate
from hybridlab.step.phases import hops, messages, optimisers, ring_order, rings
from hybridlab.step.replicas import costs_of_all, holders, replicate
from hybridlab.timeline import Timeline
from hybridlab.timeline.spans import MOST_SPANS, joined
from hybridlab.wire import FP16, WireFormat

BYTES_A_PARAMETER = 2  # of a gradient as a GPU holds it in mixed-precision training


@dataclass(frozen=True, eq=False, repr=False)
class HybridStep(Frozen):
    """One step of all ranks, as :func:`hybrid_step` returns it. Times are in ``unit``, that of the costs.

    ``timeline`` holds every rank's operations, messages, ring hops and optimiser. ``all_reduce_time`` is how long the
    rings of one device take, one after the other. ``exposed_communication`` is how much sooner the step would end if
    the rings took no time. ``single_device_time`` is the time of one device doing the same work alone, with one copy of the
    weights: all operations of all replicas, pairs overlapped as there, and the optimiser of each of the K devices once.
    With batched costs each but ``all_reduce_time`` has the settings as its axes.
    """

    timeline: Timeline
    mesh: Mesh
    all_reduce_time: float
    exposed_communication: Any
    single_device_time: Any

    @property
    def unit(self) -> str | None:
        """The unit of all times: "s", "ms", "us", or None for plain slots."""
        return self.timeline.unit

    @property
    def makespan(self) -> Any:
        """Time of the whole step."""
        return self.timeline.makespan

    @property
    def speedup(self) -> Any:
        """Time of one device doing the same work, divided by that of the step; 0 where nothing takes any time."""
        return _ratio(self.single_device_time, self.makespan)

    @property
    def efficiency(self) -> Any:
        """Speedup divided by the number of devices."""
        return self.speedup / self.mesh.size

    @property
    def communication_share(self) -> Any:
        """Exposed communication of the rings divided by the time of the step; 0 where nothing takes any time."""
        return _ratio(self.exposed_communication, self.makespan)

    @property
    def peak_activations(self) -> Floats:
        """Most activations each rank holds at once, in microbatches of a whole device, shape (settings..., ranks)."""
        return self.timeline.peak_activations

    def __repr__(self) -> str:
        message = f"makespan {self.makespan:g}, speedup {self.speedup:.2f}" if isinstance(self.makespan, float) else "several settings"
        return f"<HybridStep of {self.timeline.schedule!r}: {message}>"


@removed_arguments(microseconds="a link's seconds are converted to the unit of the costs, as in Costs(..., unit='ms')")
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
    """Return one training step of ``replicas`` pipelines: when every operation, message, ring hop and optimiser runs.

    ``schedule`` and ``costs`` are those of one pipeline of K devices; costs may also name all K x D ranks. Then the
    gradients of each stage go around the ring of its replicas, 2(D-1) steps in which every rank sends one of D pieces,
    and each device runs its optimiser. Where a schedule has two copies of the weights, both copies of every replica join the
    ring, so that it has 2D ranks, and a device takes part in the rings of two stages for each of its chunks.
    A ring step costs nothing, or either

    - ``ring_step``: its time, in the unit of the costs, for all gradients of a device; the ring of one of v chunks takes 1/v of it a
      step; or
    - ``link`` and ``gradient_bytes``, the bytes of one device's gradients as a GPU holds them, 2 a parameter: latency +
      bytes / bandwidth for the piece that a rank sends in the format ``wire``. A link's seconds become the unit of the costs.

    ``optimiser`` is the time, in the unit of the costs, that a device takes for all its weights, after its last ring. These three
    are of one copy of the weights: a device that holds two moves twice the gradients, and takes twice the time for its optimiser.

    Without ``overlap`` rings start when the whole pipeline has ended. With it the ring of a stage starts when its last
    backward (B or W) has ended on every holder and each holder's ring before it is done; computing goes on beside it.
    The rings of a device take turns, in the order of those last backwards: all devices keep to one order of the stages, by
    how many operations a holder runs up to the stage's last backward (the most over its holders), so that none waits in a circle.

    Raises :class:`HybridLabError` for both ways to price a ring step or half of one, for a link beside costs without a unit, for
    negative and infinite times, for two copies of a stage on one device, and for sizes that do not fit in memory. The order of the
    phases is that of Narayanan et al., arXiv 2104.04473; rings that join two copies are those of Li and Hoefler, arXiv 2107.06925.

    >>> from hybridlab.schedules import build
    >>> step = hybrid_step(build("1f1b", 2, 8), Costs(forward=50, backward=80), replicas=2, ring_step=20)
    >>> step.makespan, step.all_reduce_time, round(step.speedup, 2)
    (1210.0, 40.0, 3.44)
    """
    if not isinstance(schedule, Schedule) or not isinstance(costs, Costs):
        raise HybridLabError(f"hybrid_step takes a Schedule and Costs, not {short_repr(schedule)} and {short_repr(costs)}")
    if not isinstance(overlap, bool):
        raise HybridLabError(f"overlap must be True or False, not {short_repr(overlap)}")
    mesh = Mesh(schedule.devices, replicas)
    update = one_time(optimiser, "optimiser")
    ranks = mesh.replicas * schedule.copies  # of a ring
    count = 2 * (mesh.replicas * int(schedule.messages.sum()) + ranks * (ranks - 1) * schedule.stages) + mesh.size
    if count * math.prod(costs.batch) > MOST_SPANS:
        raise HybridLabError(f"a step of {count:,} messages and hops does not fit in memory: take fewer replicas or settings")
    hop, nbytes = _price(schedule.chunks, ranks, ring_step, link, gradient_bytes, wire, costs.unit)
    everyone, held = replicate(schedule, mesh.replicas), holders(schedule, mesh.replicas)
    costs = costs_of_all(costs, mesh)
    run = simulate(everyone, costs)
    edges, free = (rings(run, held, each, overlap) for each in (hop, 0.0))
    of_stage = nbytes[np.arange(schedule.stages) // mesh.stages]
    around = hops(edges, held, ring_order(everyone), of_stage)
    parts = (*messages(run, costs), *around, optimisers(edges, held, schedule.copies * update))
    exposed = edges[..., -1].max(axis=-1) - free[..., -1].max(axis=-1)
    single = run.busy.sum(axis=-1) + mesh.stages * update
    timeline = Timeline(everyone, run.start, run.end, joined(*parts), run.unit)
    of_a_device = 2 * (ranks - 1) * hop * schedule.chunks * schedule.copies
    return HybridStep(timeline, mesh, of_a_device, _plain(exposed), _plain(single))


def _price(
    chunks: int, ranks: int, ring_step: Any, link: Link | None, gradient_bytes: Any, wire: WireFormat, unit: str | None
) -> tuple[float, Ints]:
    """Return the time of one step of one ring, and the bytes of the pieces, shape (chunks, ranks); -1 if not known."""
    if not isinstance(wire, WireFormat):
        raise HybridLabError(f"wire must be a WireFormat, such as FP16, not {short_repr(wire)}")
    if ring_step is not None and (link is not None or gradient_bytes is not None):
        raise HybridLabError("give ring_step, or link with gradient_bytes, not both: each says how long a step of the ring takes")
    if (link is None) != (gradient_bytes is None):
        missing = "gradient_bytes" if gradient_bytes is None else "link"
        raise HybridLabError(f"link and gradient_bytes belong together, and {missing} is missing: a step takes latency + bytes / bandwidth")
    if link is None:
        hop = 0.0 if ring_step is None else one_time(ring_step, "ring_step")
        return hop / chunks, np.full((chunks, ranks), -1)
    if not isinstance(link, Link):
        raise HybridLabError(f"link must be a Link, such as Link(latency=5e-6, bandwidth=25e9), not {short_repr(link)}")
    if isinstance(gradient_bytes, float) and gradient_bytes.is_integer():
        gradient_bytes = int(gradient_bytes)  # people write 1e9
    nbytes = whole_number(gradient_bytes, "gradient_bytes", at_least=0, at_most=2**60)
    if nbytes % BYTES_A_PARAMETER:
        raise HybridLabError(f"gradient_bytes must be even, {BYTES_A_PARAMETER} bytes a parameter, not {nbytes}")
    pieces = _cut(_cut(np.array(nbytes // BYTES_A_PARAMETER), chunks), ranks)
    sizes, place = np.unique(pieces, return_inverse=True)
    message = np.array([wire.nbytes(size) for size in sizes.tolist()])
    seconds = link.latency + float(message.max()) / link.bandwidth
    return one_time(seconds * in_a_second(unit, "a link"), "a step of the ring"), message[place].reshape(pieces.shape)


def _cut(sizes: Ints, parts: int) -> Ints:
    """Return the sizes of the ``parts`` that ``numpy.array_split`` cuts each size into, on a new last axis."""
    return sizes[..., None] // parts + (np.arange(parts) < sizes[..., None] % parts)


def _ratio(part: Any, whole: Any) -> Any:
    return _plain(np.divide(part, whole, out=np.zeros_like(np.asarray(whole, dtype=np.float64)), where=np.asarray(whole) > 0))


def _plain(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value
