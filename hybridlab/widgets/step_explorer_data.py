"""The hybrid steps of a grid of settings as plain data, from which JavaScript alone can draw any of them."""

import json
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.inputs import counted
from hybridlab.palette import SPAN_COLOURS
from hybridlab.schedules import REGISTRY, build
from hybridlab.spans import SPAN_KINDS
from hybridlab.step import HybridStep, hybrid_step
from hybridlab.widgets.choices import scalars, wire_formats
from hybridlab.widgets.grid import MOST_BYTES
from hybridlab.widgets.pipeline import MOST_OPS, Data, kinds, packed, short
from hybridlab.widgets.step_explorer_entry import entry_of, pipeline_of, rounds_of

SIZES = ("devices", "replicas", "microbatches")
AXES = ("schedule", *SIZES, "ring", "overlap")
WORDS = ("message sent", "message received", "reduce-scatter", "all-gather", "optimiser")


class Prices(NamedTuple):
    """What a step of the ring can cost: the name of the choice, its values, and the arguments of hybrid_step for each."""

    label: str
    values: list[Any]
    arguments: list[dict[str, Any]]


def prices(ring_step: Any, link: Any, gradient_bytes: Any, wire: Any, unit: str = "") -> Prices:
    """Return what a step of the ring can cost: times to choose from, or wire formats of gradients that cross a link.

    >>> prices((20, 10), None, None, None, "ms")[:2]
    ('Ring step, ms', [10, 20])
    """
    if link is None and gradient_bytes is None:
        steps = short(scalars(0.0 if ring_step is None else ring_step, "ring_step"))
        return Prices(f"Ring step, {unit}" if unit else "Ring step", steps, [{"ring_step": each} for each in steps])
    wires = wire_formats(wire, "wire")
    shared = {"ring_step": ring_step, "link": link, "gradient_bytes": gradient_bytes}
    return Prices("Wire format", [str(each) for each in wires], [shared | {"wire": each} for each in wires])


def step_data(axes: Mapping[str, list[Any]], ring: Prices, costs: Costs, others: Mapping[str, Any], unit: str = "") -> Data:
    """Return the steps of every combination of the values of ``axes``, as data that ``json.dumps`` takes.

    ``axes`` has the keys schedule, devices (of one pipeline), replicas, microbatches and overlap; ``others`` are arguments of
    :func:`hybrid_step` for all settings. What is equal in several settings, such as the replicas of one, is held once:

    - ``pipelines``, by "schedule/devices/microbatches": ``orders`` (one text a device), ``peak`` (activations, one a
      device), ``chunks``, and ``messages`` (row of an operation, device that needs its output); where there are overlapped
      pairs, ``pairs``, and where there are several copies of the weights, ``paths`` and ``copy``, as ``pairs``, ``paths`` and
      ``copy_of`` of a :class:`Schedule`
    - ``runs``: ``start`` and ``end`` of every operation of one replica
    - ``rounds``, by the number of ranks of a ring: its hops, each with ``kind``, ``step``, and for each rank, replica by
      replica and copy by copy, the ``piece`` it sends and the place ``to`` which it sends
    - ``steps``, by "schedule/devices/microbatches/replicas/place of the ring's price/overlap": ``runs`` (one place a
      replica), ``rings`` (device of the first copy, stage, start, bytes of each piece if known), ``hop`` (its time),
      ``optimiser`` (its start, one a device), ``update`` (its time), and the figures of the step; or the sentence ``refusal``

    Raises :class:`HybridLabError` for wrong values, for a grid where nothing runs, and for more than 2 MB of data.
    """
    pipelines, rounds, steps = Data(), Data(), Data()
    runs: dict[str, int] = {}
    for key, step in _steps(axes, ring, costs, others):
        if isinstance(step, str):
            steps[key] = {"refusal": step}
            continue
        pipelines.setdefault(key.rsplit("/", 3)[0], pipeline_of(step))
        rounds.setdefault(str(step.mesh.replicas * step.timeline.schedule.copies), rounds_of(step))
        steps[key] = entry_of(step, runs)
        if sum(map(len, runs)) > MOST_BYTES:
            break
    if all("refusal" in entry for entry in steps.values()):
        raise HybridLabError(f"no setting of this grid can run: {next(iter(steps.values()))['refusal']}")
    data = {
        "unit": unit,
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
    hops = 2 * copies * (replicas * copies - 1) * stages
    most = 3 * stages * microbatches + hops + devices  # of one replica, if it splits its backwards
    if replicas * most <= MOST_OPS:
        return None
    sizes = f"{counted(devices, 'device')} x {counted(replicas, 'replica')} x {counted(microbatches, 'microbatch')}"
    return f"{sizes} have more operations than the {MOST_OPS:,} that can be drawn; try fewer microbatches or replicas"
