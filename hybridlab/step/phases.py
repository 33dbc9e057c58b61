"""The parts of a hybrid step beside its operations, as spans: messages, the rings of all stages, the optimiser."""

import numpy as np

from hybridlab.arrays import Floats, Ints, readonly
from hybridlab.costs import Costs
from hybridlab.schedule import Operations
from hybridlab.simulation import latencies
from hybridlab.timeline import Timeline
from hybridlab.timeline.spans import ALL_GATHER, OPTIMISER, RECEIVE, REDUCE_SCATTER, SEND, Spans


def ring_order(schedule: Operations) -> Ints:
    """Return the stages in the order in which their rings run: by the place of the last backward in its device's order.

    That is the largest place over the devices that hold the stage; equal ones go by the number of the stage. Slots would not do:
    schedules with the same orders can have different ones.
    """
    place = np.arange(schedule.kind.size) - schedule.first[schedule.device]
    last = np.zeros(schedule.stages, dtype=np.intp)
    np.maximum.at(last, schedule.stage, place)
    return np.argsort(last, kind="stable")


def rings(run: Timeline, holders: Ints, hop: float, overlap: bool) -> Floats:
    """Return the ends of the steps of every ring, its start before them, shape (settings..., stages, steps + 1).

    ``holders`` has the ranks of the ring of every stage. A ring waits for the rings before it, in :func:`ring_order`, of every
    rank that takes part. All ranks keep to this one order, so that the first ring in it that is not done can always run.
    """
    settings, schedule = run.end.shape[:-1], run.schedule
    ready = np.full((schedule.stages, *settings), -np.inf)
    if overlap:
        np.maximum.at(ready, schedule.stage, np.moveaxis(run.end, -1, 0))
    else:
        ready[:] = run.end.max(axis=-1)
    steps = 2 * (holders.shape[1] - 1)
    done = np.full((schedule.devices, *settings), -np.inf)
    for stage in ring_order(schedule).tolist():
        ready[stage] = np.maximum(ready[stage], done[holders[stage]].max(axis=0))
        done[holders[stage]] = ready[stage] + hop * steps
    edges: Floats = np.moveaxis(ready, 0, -1)[..., None] + hop * np.arange(steps + 1)
    return edges


def messages(run: Timeline, costs: Costs) -> tuple[Spans, Spans]:
    """Return a send and a receive for every output that an operation on another device needs; ``costs`` are of all devices."""
    schedule = run.schedule
    needs = np.flatnonzero(schedule.crosses)
    row = schedule.source[needs]
    sender, receiver = schedule.device[row], schedule.device[needs]
    start = run.end[..., row]
    end = start + latencies(schedule, costs)[..., needs]
    stage, microbatch = schedule.stage[row], schedule.microbatch[row]

    def of(kind: int, device: Ints, peer: Ints) -> Spans:
        return Spans(np.full(row.size, kind), device, start, end, stage, microbatch, peer=peer, row=row)

    return of(SEND, sender, receiver).where(np.argsort(row, kind="stable")), of(RECEIVE, receiver, sender)


def hops(edges: Floats, holders: Ints, order: Ints, nbytes: Ints) -> tuple[Spans, Spans]:
    """Return what every rank sends in the two phases of every ring, chunks as in ``ring_all_reduce``.

    They stand rank by rank, those of a rank in the ``order`` of the rings; ``nbytes`` has the bytes of the pieces of every stage.
    """
    ranks, hops = holders.shape[1], holders.shape[1] - 1
    # The places in all rings, rank by rank: whose turn the ring has, and which of its ranks it is.
    turn, place = np.divmod(np.argsort(holders[order], axis=None, kind="stable")[:, None], ranks)
    stage, step = order[turn], np.arange(hops)

    def phase(kind: int, first: int) -> Spans:
        chunk = (place + (kind == ALL_GATHER) - step) % ranks
        columns = {"device": holders[stage, place], "stage": stage, "step": step, "chunk": chunk}
        columns |= {"peer": holders[stage, (place + 1) % ranks], "nbytes": nbytes[stage, chunk]}
        flat = {name: readonly(np.broadcast_to(column, chunk.shape).ravel()) for name, column in columns.items()}
        at = first + step
        start, end = (readonly(edges[..., stage, each].reshape(*edges.shape[:-2], -1)) for each in (at, at + 1))
        return Spans(readonly(np.full(chunk.size, kind)), start=start, end=end, **flat)

    return phase(REDUCE_SCATTER, 0), phase(ALL_GATHER, hops)


def optimisers(edges: Floats, holders: Ints, update: float) -> Spans:
    """Return the optimiser of every rank, which starts when its last ring is done."""
    ranks = np.arange(holders.max() + 1)
    done = np.full((ranks.size, *edges.shape[:-2]), -np.inf)
    np.maximum.at(done, holders, np.moveaxis(edges[..., -1], -1, 0)[:, None])
    start = readonly(np.moveaxis(done, 0, -1))
    return Spans(np.full(ranks.size, OPTIMISER), ranks, start, start + update)
