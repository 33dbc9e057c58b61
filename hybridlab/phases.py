"""The parts of a hybrid step beside its operations, as spans: messages, the rings of all stages, the optimiser."""

import numpy as np

from hybridlab.fixed import fixed
from hybridlab.inputs import Floats
from hybridlab.mesh import Mesh
from hybridlab.rows import Ints
from hybridlab.schedule import Schedule
from hybridlab.spans import ALL_GATHER, OPTIMISER, RECEIVE, REDUCE_SCATTER, SEND, Spans
from hybridlab.timeline import Timeline


def ring_order(schedule: Schedule) -> Ints:
    """Return the stages of each device in the order of their last backwards, shape (devices, chunks)."""
    last = np.zeros(schedule.stages, dtype=np.intp)
    np.maximum.at(last, schedule.stage, np.arange(schedule.stage.size))
    return np.argsort(last).reshape(schedule.devices, schedule.chunks)  # rows stand device by device


def rings(run: Timeline, schedule: Schedule, mesh: Mesh, hop: float, overlap: bool) -> Floats:
    """Return the ends of the steps of every ring, its start before them, shape (settings..., devices, chunks, 2(D-1) + 1)."""
    settings = run.end.shape[:-1]
    if overlap:
        ended = run.end.reshape(*settings, mesh.replicas, -1).max(axis=-2)  # on every replica
        ready = np.full((*settings, schedule.stages), -np.inf)
        np.maximum.at(np.moveaxis(ready, -1, 0), schedule.stage, np.moveaxis(ended, -1, 0))
        start = ready[..., ring_order(schedule)]
    else:
        start = np.empty((*settings, schedule.devices, schedule.chunks))
        start[...] = run.end.max(axis=-1)[..., None, None]
    steps = 2 * (mesh.replicas - 1)
    for chunk in range(1, schedule.chunks):  # the rings of a device take turns
        start[..., chunk] = np.maximum(start[..., chunk], start[..., chunk - 1] + hop * steps)
    edges: Floats = start[..., None] + hop * np.arange(steps + 1)
    return edges


def messages(run: Timeline, p2p: Floats) -> tuple[Spans, Spans]:
    """Return a send and a receive for every output that an operation on another device needs."""
    schedule = run.schedule
    needs = np.flatnonzero(schedule.crosses)
    row = schedule.source[needs]
    sender, receiver = schedule.device[row], schedule.device[needs]
    start = run.end[..., row]
    end = start + p2p[..., None]
    stage, microbatch = schedule.stage[row], schedule.microbatch[row]

    def of(kind: int, device: Ints, peer: Ints) -> Spans:
        return Spans(np.full(row.size, kind), device, start, end, stage, microbatch, peer=peer, row=row)

    return of(SEND, sender, receiver).where(np.argsort(row, kind="stable")), of(RECEIVE, receiver, sender)


def hops(edges: Floats, stage: Ints, mesh: Mesh, nbytes: Ints) -> tuple[Spans, Spans]:
    """Return what every rank sends in the two phases of every ring, chunks as in ``ring_all_reduce``."""
    hops = mesh.replicas - 1
    replica, device, _, step = np.ogrid[: mesh.replicas, : mesh.stages, : stage.shape[-1], :hops]
    ranks = np.broadcast_to(replica * mesh.stages + device, (mesh.replicas, *stage.shape, hops))
    receivers = np.broadcast_to((replica + 1) % mesh.replicas * mesh.stages + device, ranks.shape)

    def phase(kind: int, first: int) -> Spans:
        chunk = np.broadcast_to((replica + (kind == ALL_GATHER) - step) % mesh.replicas, ranks.shape)
        starts, ends = (edges[..., None, :, :, first + late : first + late + hops] for late in (0, 1))
        shape = (*edges.shape[:-3], *ranks.shape)
        start, end = (fixed(np.broadcast_to(each, shape).reshape(*edges.shape[:-3], -1)) for each in (starts, ends))
        columns = {"stage": stage[..., None], "step": step, "peer": receivers, "chunk": chunk}
        columns["nbytes"] = nbytes[stage[..., None] // mesh.stages, chunk]
        flat = {name: fixed(np.broadcast_to(column, ranks.shape).ravel()) for name, column in columns.items()}
        return Spans(fixed(np.full(ranks.size, kind)), fixed(ranks.ravel()), start, end, **flat)

    return phase(REDUCE_SCATTER, 0), phase(ALL_GATHER, hops)


def optimisers(edges: Floats, mesh: Mesh, update: float) -> Spans:
    """Return the optimiser of every rank, which starts when the device's last ring is done."""
    start = np.concatenate([edges[..., -1, -1]] * mesh.replicas, axis=-1)
    ranks = np.arange(mesh.size)
    return Spans(np.full(mesh.size, OPTIMISER), ranks, start, start + update)
