"""One hybrid step as plain data: what the step explorer's grid holds of it."""

from typing import Any

import numpy as np

from hybridlab.errors import HybridLabError
from hybridlab.spans import SPAN_KINDS, Spans
from hybridlab.step import HybridStep
from hybridlab.widgets.pipeline import Data, packed, short

HOPS = ("reduce-scatter", "all-gather")


def pipeline_of(step: HybridStep) -> Data:
    """Return what does not change with the replicas: the orders, the peaks, and who needs the output of which row."""
    schedule, devices, sends = step.timeline.schedule, step.mesh.stages, _spans(step, "send")
    first = sends.where(sends.device < devices)
    pairs = schedule.pairs[schedule.device[schedule.pairs] < devices]
    data: Data = {
        "orders": [" ".join(map(str, order)) for order in schedule.orders[:devices]],
        "peak": short(step.peak_activations[:devices]),
        "chunks": schedule.chunks,
        "messages": np.stack([first.row, first.peer], 1).tolist(),
    }
    if pairs.size:
        data["pairs"] = pairs.tolist()
    if schedule.copies > 1:
        data |= {"paths": [list(path) for path in schedule.paths], "copy": schedule.copy_of.tolist()}
    return data


def rounds_of(step: HybridStep) -> list[Data]:
    """Return the hops of the ring of one stage, the same for all rings of as many ranks."""
    mesh, hops = step.mesh, _spans(step, *HOPS)
    ring = hops.where(hops.stage == 0)
    held = [path[0] for path in step.timeline.schedule.paths]
    ranks = [replica * mesh.stages + device for replica in range(mesh.replicas) for device in held]
    place = np.zeros(mesh.size, dtype=np.intp)
    place[ranks] = np.arange(len(ranks))
    rounds = []
    for kind, number in dict.fromkeys(zip(ring.kind.tolist(), ring.step.tolist(), strict=True)):
        one = ring.where((ring.kind == kind) & (ring.step == number))
        one = one.where(np.argsort(place[one.device]))
        rounds.append({"kind": SPAN_KINDS[kind], "step": number, "piece": one.chunk.tolist(), "to": place[one.peer].tolist()})
    return rounds


def entry_of(step: HybridStep, runs: dict[str, int]) -> Data:
    """Return one step; the times of its operations go into ``runs``, each of them once."""
    mesh, timeline = step.mesh, step.timeline
    starts, ends = (np.split(times, mesh.replicas) for times in (timeline.start, timeline.end))
    texts = (packed({"start": short(start), "end": short(end)}) for start, end in zip(starts, ends, strict=True))
    optimiser = _spans(step, "optimiser")
    hops = _spans(step, *HOPS)
    figures = {
        "makespan": step.makespan,
        "all_reduce": step.all_reduce_time,
        "exposed": step.exposed_communication,
        "share": step.communication_share,
        "speedup": step.speedup,
        "efficiency": step.efficiency,
        "single": step.single_device,
        "update": (optimiser.end - optimiser.start).max(),
        "hop": (hops.end - hops.start).max(initial=0.0),
    }
    return {
        "runs": [runs.setdefault(text, len(runs)) for text in texts],
        "rings": _rings(hops, timeline.schedule.device_of),
        "optimiser": short(optimiser.start[: mesh.stages]),
        **dict(zip(figures, short(figures.values()), strict=True)),
    }


def _rings(hops: Spans, devices: tuple[int, ...]) -> list[list[Any]]:
    """Return device, stage, start and the bytes of each piece, if they are known, of every ring; ``devices`` has that of each stage."""
    rings = []
    for device in range(1 + max(devices)):
        own = hops.where(hops.device == device)
        for stage in (each for each in dict.fromkeys(own.stage.tolist()) if devices[each] == device):
            ring = own.where(own.stage == stage)
            nbytes = dict(zip(ring.chunk.tolist(), ring.nbytes.tolist(), strict=True))
            sizes = [nbytes[piece] for piece in sorted(nbytes)]
            rings.append([device, stage, short([ring.start.min()])[0], sizes if min(sizes) >= 0 else []])
    return rings


def _spans(step: HybridStep, *kinds: str) -> Spans:
    spans = step.timeline.spans
    if spans is None:
        raise HybridLabError("this step does not tell what its devices did beside their operations")
    return spans.of(*kinds)
