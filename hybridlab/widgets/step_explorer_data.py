"""The hybrid steps of a grid of settings as plain data, from which JavaScript alone can draw any of them."""

import json
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from hybridlab.checks import counted
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.palette import SPAN_COLOURS
from hybridlab.schedule.text import turn_text
from hybridlab.schedules import REGISTRY, build
from hybridlab.step import HybridStep, hybrid_step
from hybridlab.timeline.spans import SPAN_KINDS, Spans
from hybridlab.widgets.choices import Prices
from hybridlab.widgets.grid import MOST_BYTES
from hybridlab.widgets.pipeline import MOST_OPS, Data, kinds, packed, short

SIZES = ("devices", "replicas", "microbatches")
AXES = ("schedule", *SIZES, "ring", "overlap")
WORDS = ("message sent", "message received", "reduce-scatter", "all-gather", "optimiser")


def step_data(axes: Mapping[str, list[Any]], ring: Prices, costs: Costs, others: Mapping[str, Any]) -> Data:
    """Return the steps of every combination of the values of ``axes``, as data that ``json.dumps`` takes.

    ``axes`` has the keys schedule, devices (of one pipeline), replicas, microbatches and overlap; ``others`` are arguments of
    :func:`hybrid_step` for all settings. What is equal in several settings, such as the replicas of one, is held once:

    - ``pipelines``, by "schedule/devices/microbatches": ``orders`` (one text a device), ``peak`` (activations, one a
      device), ``chunks``, ``messages`` (row of an operation, device that needs its output), and ``copy`` of each microbatch
      if there are several copies of the weights
    - ``runs``: ``start`` and ``end`` of every operation of one replica
    - ``rounds``, by ranks: the hops of a ring, each with ``kind``, ``step``, and for each rank of it the ``piece`` it sends
      and the place in the ring ``to`` which it sends
    - ``steps``, by "schedule/devices/microbatches/replicas/place of the ring's price/overlap": ``runs`` (one place a
      replica), ``rings`` (device, or one a copy, stage, start, bytes of each piece if known), ``hop`` (its time), ``optimiser`` (its
      start, one a device), ``update`` (its time), and the figures of the step; or the sentence ``refusal``

    Raises :class:`HybridLabError` for wrong values, for a grid where nothing runs, and for more than 2 MB of data.
    """
    pipelines, rounds, steps = Data(), Data(), Data()
    runs: dict[str, int] = {}
    for key, step in _steps(axes, ring, costs, others):
        if isinstance(step, str):
            steps[key] = {"refusal": step}
            continue
        pipelines.setdefault(key.rsplit("/", 3)[0], _pipeline(step))
        rounds.setdefault(str(step.mesh.replicas * step.timeline.schedule.copies), _rounds(step))
        steps[key] = _entry(step, runs)
        if sum(map(len, runs)) > MOST_BYTES:
            break
    if all("refusal" in entry for entry in steps.values()):
        raise HybridLabError(f"no setting of this grid can run: {next(iter(steps.values()))['refusal']}")
    data = {
        "unit": costs.unit or "",  # the script takes an empty text for none
        "label": ring.label,
        "p2p": short(costs.p2p.ravel())[0],
        "kinds": kinds({key.split("/")[0]: [entry["chunks"]] for key, entry in pipelines.items()}),
        "spans": {kind: {"words": words, "colour": SPAN_COLOURS.get(kind)} for kind, words in zip(SPAN_KINDS, WORDS, strict=True)},
        "titles": {name: REGISTRY[name].title for name in axes["schedule"]},
        **axes,
        "ring": ring.values,
        "pipelines": pipelines,
        "runs": [json.loads(text) for text in runs],
        "rounds": rounds,
        "steps": steps,
    }
    if len(packed(data)) > MOST_BYTES:
        raise HybridLabError(f"this grid is more than the {MOST_BYTES / 1e6:g} MB of data that a page can carry: give fewer values")
    return data


def key_of(data: Mapping[str, Any], setting: Mapping[str, Any]) -> str:
    """Return the name that the entry of a setting has in ``steps``.

    >>> setting = {"schedule": "1f1b", "devices": 2, "replicas": 4, "microbatches": 8, "ring": "FP16", "overlap": True}
    >>> key_of({"ring": ["FP32", "FP16"]}, setting)
    '1f1b/2/8/4/1/1'
    """
    sizes = "/".join(str(setting[name]) for name in ("schedule", "devices", "microbatches", "replicas"))
    return f"{sizes}/{data['ring'].index(setting['ring'])}/{int(setting['overlap'])}"


def _steps(axes: Mapping[str, list[Any]], ring: Prices, costs: Costs, others: Mapping[str, Any]) -> Iterator[tuple[str, HybridStep | str]]:
    """Yield the name of every combination with its step, or with the sentence of why there is none."""
    for name, devices, microbatches in product(axes["schedule"], axes["devices"], axes["microbatches"]):
        refusal = REGISTRY[name].refusal(devices, microbatches, REGISTRY[name].fewest_chunks)
        for replicas, place, overlap in product(axes["replicas"], range(len(ring.values)), axes["overlap"]):
            key = f"{name}/{devices}/{microbatches}/{replicas}/{place}/{int(overlap)}"
            refused = refusal or _too_many(name, devices, replicas, microbatches)
            if refused:
                yield key, refused
            else:
                schedule = build(name, devices, microbatches)
                yield key, hybrid_step(schedule, costs, replicas, overlap=overlap, **ring.arguments[place], **others)


def _too_many(name: str, devices: int, replicas: int, microbatches: int) -> str | None:
    """Return why a step has more to draw than a browser can, or None."""
    stages, copies = devices * REGISTRY[name].fewest_chunks, REGISTRY[name].copies
    most = 3 * stages * microbatches + 2 * copies * (copies * replicas - 1) * stages + devices  # of one replica, if it splits its backwards
    if replicas * most <= MOST_OPS:
        return None
    sizes = f"{counted(devices, 'device')} x {counted(replicas, 'replica')} x {counted(microbatches, 'microbatch')}"
    return f"{sizes} have more operations than the {MOST_OPS:,} that can be drawn; try fewer microbatches or replicas"


def _pipeline(step: HybridStep) -> Data:
    """Return what does not change with the replicas: the orders, the peaks, and who needs the output of which row."""
    schedule, devices, sends = step.timeline.schedule, step.mesh.stages, _spans(step, "send")
    first = sends.where(sends.device < devices)
    return {
        "orders": [" ".join(map(turn_text, order)) for order in schedule.turns[:devices]],
        "peak": short(step.peak_activations[:devices]),
        "chunks": schedule.chunks,
        "messages": np.stack([first.row, first.peer], 1).tolist(),
    } | ({"copy": schedule.copy_of.tolist()} if schedule.copies > 1 else {})


def _rounds(step: HybridStep) -> list[Data]:
    """Return the hops of the ring of one stage, the same for all."""
    hops = _spans(step, "reduce-scatter", "all-gather")
    ring = hops.where(hops.stage == 0)
    ranks = [replica * step.mesh.stages + path[0] for replica in range(step.mesh.replicas) for path in step.timeline.schedule.paths]
    rounds = []
    for kind, number in dict.fromkeys(zip(ring.kind.tolist(), ring.step.tolist(), strict=True)):
        one = ring.where((ring.kind == kind) & (ring.step == number))
        one = one.where(np.argsort([ranks.index(rank) for rank in one.device]))
        to = [ranks.index(rank) for rank in one.peer]
        rounds.append({"kind": SPAN_KINDS[kind], "step": number, "piece": one.chunk.tolist(), "to": to})
    return rounds


def _entry(step: HybridStep, runs: dict[str, int]) -> Data:
    """Return one step; the times of its operations go into ``runs``, each of them once."""
    mesh, timeline = step.mesh, step.timeline
    starts, ends = (np.split(times, mesh.replicas) for times in (timeline.start, timeline.end))
    texts = (packed({"start": short(start), "end": short(end)}) for start, end in zip(starts, ends, strict=True))
    optimiser = _spans(step, "optimiser")
    hops = _spans(step, "reduce-scatter", "all-gather")
    figures = {
        "makespan": step.makespan,
        "all_reduce": step.all_reduce_time,
        "exposed": step.exposed_communication,
        "share": step.communication_share,
        "speedup": step.speedup,
        "efficiency": step.efficiency,
        "single": step.single_device_time,
        "update": (optimiser.end - optimiser.start).max(),
        "hop": (hops.end - hops.start).max(initial=0.0),
    }
    return {
        "runs": [runs.setdefault(text, len(runs)) for text in texts],
        "rings": _rings(hops, step),
        "optimiser": short(optimiser.start[: mesh.stages]),
        **dict(zip(figures, short(figures.values()), strict=True)),
    }


def _rings(hops: Spans, step: HybridStep) -> list[list[Any]]:
    """Return device (or devices), stage, start and the bytes of each piece, if they are known, of every ring."""
    rings: dict[int, list[Any]] = {}
    for device in range(step.mesh.stages):
        own = hops.where(hops.device == device)
        for stage in dict.fromkeys(own.stage.tolist()):
            ring = own.where(own.stage == stage)
            nbytes = [size for _, size in sorted(set(zip(ring.chunk.tolist(), ring.nbytes.tolist(), strict=True)))]
            held = [path[stage] for path in step.timeline.schedule.paths]
            place, known = held if len(held) > 1 else device, nbytes if min(nbytes) >= 0 else []
            rings.setdefault(stage, [place, stage, short([ring.start.min()])[0], known])
    return list(rings.values())


def _spans(step: HybridStep, *kinds: str) -> Spans:
    spans = step.timeline.spans
    if spans is None:
        raise HybridLabError("this step does not tell what its devices did beside their operations")
    return spans.of(*kinds)
