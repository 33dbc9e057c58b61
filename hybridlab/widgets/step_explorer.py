"""The step explorer: one training step of all devices of a mesh, from the first forward to the last optimiser."""

import json
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import traitlets

from hybridlab.checks import counted, known_name, one_time, removed_arguments, short_repr, true_or_false, whole_number
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.mesh import Mesh
from hybridlab.palette import SPAN_COLOURS
from hybridlab.schedule.text import turn_text
from hybridlab.schedules import REGISTRY, build
from hybridlab.step import HybridStep, hybrid_step
from hybridlab.timeline.spans import SPAN_KINDS, Spans
from hybridlab.widgets.choices import costs_of_one_setting, one_or_several, schedule_names, sorted_times, whole_numbers, wire_formats
from hybridlab.widgets.page_data import MOST_OPS, Data, compact_json, digest, nine_digits, operation_kinds, refuse_too_large
from hybridlab.widgets.scripts import script_of
from hybridlab.widgets.view import Checked, View, as_trait_error, shown_first, style_sheet
from hybridlab.wire import FP16, WireFormat

SIZES = ("devices", "replicas", "microbatches")
AXES = ("schedule", *SIZES, "ring", "overlap")
SPAN_WORDS = ("message sent", "message received", "reduce-scatter", "all-gather", "optimiser")


class StepExplorer(View):
    """A picture of one training step on all ranks: pipelines, messages, the rings of all stages, the optimiser.

    All steps are in the trait ``data``, so the picture needs no running kernel. The traits ``schedule``, ``devices``, ``replicas``,
    ``microbatches``, ``ring`` (the time of a ring step, or the name of a wire format) and ``overlap`` follow the controls, ``rank`` and
    ``time`` follow the cursor; Python can observe and set them. A rank that a smaller mesh does not have becomes 0.

    Parameters
    ----------
    schedules : str or iterable of str
        Names of the schedules to choose from. Each has its fewest chunks.
    devices, replicas, microbatches : int or iterable of int
        Devices of one pipeline (K), replicas (D) and microbatches of each replica (M) to choose from.
    forward, backward, weight_share, p2p, unit
        As in :class:`Costs`. Different costs on the ranks show what a slow replica does.
    pair_overlap : float
        The argument ``overlap`` of :class:`Costs`.
    ring_step : float, iterable of float or None
        Times of one step of the ring to choose from, in ``unit``.
    link, gradient_bytes, wire
        As in :func:`hybrid_step`, instead of ``ring_step``; ``wire`` is one format or several to choose from.
    overlap : bool or iterable of bool
        Whether rings run during the backwards of other stages.
    optimiser : float
        The time of the optimiser, in ``unit``.
    show : mapping or None
        The setting to begin with, such as ``{"replicas": 4, "rank": 5, "time": 120}``. What it leaves out begins at the first value.

    Raises
    ------
    HybridLabError
        For wrong values, for a grid that is empty or in which nothing can run, and for more than 2 MB of data.

    Examples
    --------
    >>> explorer = StepExplorer(replicas=(1, 2), microbatches=8, forward=50, backward=80, ring_step=20)
    >>> explorer  # doctest: +ELLIPSIS
    <StepExplorer: 8 settings, data ...; gpipe, 2 devices, 1 replica, 8 microbatches, ring 20, no overlap; rank 0 at 0>
    >>> explorer.replicas = 2
    >>> explorer.step.makespan
    1210.0
    """

    SETTING = (*AXES, "rank", "time")
    _esm = script_of("step_explorer.js")
    _css = style_sheet("step", files=("timeline.css", "step_explorer.css"))

    data = traitlets.Dict(read_only=True).tag(sync=True)
    schedule = Checked().tag(sync=True)
    devices = Checked().tag(sync=True)
    replicas = Checked().tag(sync=True)
    microbatches = Checked().tag(sync=True)
    ring = Checked().tag(sync=True)
    overlap = Checked().tag(sync=True)
    rank = Checked(0).tag(sync=True)
    time = Checked(0).tag(sync=True)

    @removed_arguments(microseconds="a link's seconds are converted to the unit of the costs, unit='ms' or another")
    def __init__(
        self,
        schedules: Any = ("gpipe", "1f1b"),
        devices: Any = 2,
        replicas: Any = (1, 2, 4),
        microbatches: Any = (2, 4, 8),
        *,
        forward: Any = 1.0,
        backward: Any = 2.0,
        weight_share: Any = 0.5,
        p2p: Any = 0.0,
        pair_overlap: Any = 0.0,
        ring_step: Any = None,
        link: Any = None,
        gradient_bytes: int | None = None,
        wire: Any = FP16,
        overlap: Any = (False, True),
        optimiser: float = 0.0,
        unit: str | None = "ms",
        show: Mapping[str, Any] | None = None,
    ) -> None:
        sizes = {name: whole_numbers(value, name) for name, value in zip(SIZES, (devices, replicas, microbatches), strict=True)}
        overlaps = sorted({true_or_false(each, "each value of overlap") for each in one_or_several(overlap, "overlap")})
        axes: dict[str, list[Any]] = {"schedule": schedule_names(schedules), **sizes, "overlap": overlaps}
        self._costs = costs_of_one_setting(
            forward=forward, backward=backward, weight_share=weight_share, p2p=p2p, overlap=pair_overlap, unit=unit
        )
        self._ring_costs = ring_costs(ring_step, link, gradient_bytes, wire, self._costs.unit)
        self._optimiser = optimiser
        data = step_data(axes, self._ring_costs, self._costs, optimiser)
        self._digest = digest(data)
        self.set_trait("data", data)
        super().__init__(**self._first_setting(show))

    @property
    def step(self) -> HybridStep:
        """The step of the current setting. If the schedule does not support the size, this raises :class:`UnsupportedSize`."""
        schedule = build(self.schedule, self.devices, self.microbatches)
        ring = self._ring_costs.arguments[self.data["ring"].index(self.ring)]
        return hybrid_step(schedule, self._costs, self.replicas, overlap=self.overlap, optimiser=self._optimiser, **ring)

    def checked(self, name: str, value: Any) -> Any:
        """Return the value if it is one that the explorer was made with, a rank or a time; or refuse it."""
        if name == "rank":
            return whole_number(value, name, at_least=0)
        if name == "time":
            return nine_digits([one_time(value, "time")])[0]
        if name == "schedule":
            return known_name(value, self.data[name], "schedule of this explorer", any_case=True)
        plain = str(value) if isinstance(value, WireFormat) else value
        for each in self.data[name]:
            alike = type(plain) is type(each) or not {bool, str} & {type(plain), type(each)}
            if alike and isinstance(plain, (bool, int, float, str, np.number)) and each == plain:
                return each
        known = ", ".join(map(str, self.data[name]))
        raise HybridLabError(f"this explorer has no step with {name} = {short_repr(value)}: choose from {known}", "out-of-range")

    def _first_setting(self, show: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the setting to begin with: what ``show`` says, and for the rest the first values that can run."""
        asked = {name: self.checked(name, value) for name, value in shown_first(show, self.SETTING, '{"replicas": 2}').items()}
        choices = ([asked[name]] if name in asked else self.data[name] for name in AXES)
        settings = [dict(zip(AXES, values, strict=True)) for values in product(*choices)]
        entries = [self.data["steps"][step_key(self.data, setting)] for setting in settings]
        first = next((setting for setting, entry in zip(settings, entries, strict=True) if "refusal" not in entry), None)
        if first is None:
            raise HybridLabError(f"the explorer cannot begin with this setting: {entries[0]['refusal']}", "unsupported-size")
        return first | {name: asked.get(name, 0) for name in ("rank", "time")}

    @traitlets.validate("rank")
    def _in_mesh(self, proposal: Any) -> int:
        rank: int = proposal["value"]
        with as_trait_error():
            Mesh(self.devices, self.replicas).coordinates(rank)
        return rank

    @traitlets.observe("devices", "replicas")
    def _follow(self, _: Any) -> None:
        if self.rank >= Mesh(self.devices, self.replicas).size:
            self.rank = 0

    def __repr__(self) -> str:
        """Return the grid's size and digest and the setting; the text is the same in every run, since stored outputs have it."""
        count = sum("refusal" not in entry for entry in self.data["steps"].values())
        numbers = {"device": self.devices, "replica": self.replicas, "microbatch": self.microbatches}
        sizes = ", ".join(counted(number, name) for name, number in numbers.items())
        setting = f"{self.schedule}, {sizes}, ring {self.ring}, {'overlap' if self.overlap else 'no overlap'}"
        return f"<StepExplorer: {counted(count, 'setting')}, data {self._digest}; {setting}; rank {self.rank} at {self.time}>"


class RingCosts(NamedTuple):
    """What a step of the ring can cost: the label of the control, its values, and for each the arguments of :func:`hybrid_step`."""

    label: str
    values: list[Any]
    arguments: list[dict[str, Any]]


def ring_costs(ring_step: Any, link: Any, gradient_bytes: Any, wire: Any, unit: str | None = None) -> RingCosts:
    """Return what a step of the ring can cost: times to choose from, or wire formats of gradients that cross a link.

    Parameters
    ----------
    ring_step, link, gradient_bytes, wire, unit
        As for :class:`StepExplorer`.

    Examples
    --------
    >>> ring_costs((20, 10), None, None, None, "ms")[:2]
    ('Ring step, ms', [10, 20])
    """
    if link is None and gradient_bytes is None:
        steps = nine_digits(sorted_times(0.0 if ring_step is None else ring_step, "ring_step"))
        return RingCosts(f"Ring step, {unit}" if unit else "Ring step", steps, [{"ring_step": each} for each in steps])
    wires = wire_formats(wire, "wire")
    shared = {"ring_step": ring_step, "link": link, "gradient_bytes": gradient_bytes}
    return RingCosts("Wire format", [str(each) for each in wires], [shared | {"wire": each} for each in wires])


def step_data(axes: Mapping[str, list[Any]], ring: RingCosts, costs: Costs, optimiser: float) -> Data:
    """Return the steps of every combination of the values of the axes.

    Parameters
    ----------
    axes : mapping of str to list
        Values of schedule, devices (of one pipeline), replicas, microbatches and overlap.
    ring : RingCosts
        What a step of the ring can cost.
    costs : Costs
        The costs of all settings.
    optimiser : float
        The time of the optimiser, in the unit of the costs.

    Returns
    -------
    dict
        What ``json.dumps`` takes. What several settings share, such as the replicas of one setting, is there once:

        - ``pipelines``, by "schedule/devices/microbatches": ``orders`` (one text for each device), ``peak`` (activations at the peak of
          each device), ``chunks``, ``messages`` ([row of an operation, device that needs its output]), and ``copy`` of each microbatch if
          there are several copies of the weights
        - ``runs``: ``start`` and ``end`` of every operation of one replica
        - ``rounds``, by number of ranks: the hops of a ring. Each has ``kind``, ``step``, and for each rank the ``piece`` that it sends
          and ``to``, the place in the ring of the receiver
        - ``steps``, by "schedule/devices/microbatches/replicas/place of the ring's cost/overlap": ``runs`` (one place for each replica),
          ``rings`` ([device, or one for each copy; stage; start; bytes of each piece if known]), ``hop`` (the time of a hop),
          ``optimiser`` (one start for each device), ``update`` (the time of the optimiser), and the figures of the step. A setting that
          cannot run has ``refusal``, the sentence.

    Raises
    ------
    HybridLabError
        For wrong values, for a grid in which nothing can run, and for more than 2 MB of data.
    """
    pipelines, rounds, steps = Data(), Data(), Data()
    runs: dict[str, int] = {}
    for key, step in _all_steps(axes, ring, costs, optimiser):
        if isinstance(step, str):
            steps[key] = {"refusal": step}
            continue
        pipelines.setdefault(key.rsplit("/", 3)[0], _pipeline_entry(step))
        rounds.setdefault(str(step.mesh.replicas * step.timeline.schedule.copies), _hop_entries(step))
        steps[key] = _step_entry(step, runs)
        refuse_too_large(sum(map(len, runs)))
    if all("refusal" in entry for entry in steps.values()):
        raise HybridLabError(f"no setting of this grid can run: {next(iter(steps.values()))['refusal']}", "unsupported-size")
    data = {
        "unit": costs.unit or "",  # the script takes an empty text for none
        "label": ring.label,
        "p2p": nine_digits(costs.p2p.ravel())[0],
        "kinds": operation_kinds({key.split("/")[0]: [entry["chunks"]] for key, entry in pipelines.items()}),
        "spans": {kind: {"words": words, "colour": SPAN_COLOURS.get(kind)} for kind, words in zip(SPAN_KINDS, SPAN_WORDS, strict=True)},
        "titles": {name: REGISTRY[name].title for name in axes["schedule"]},
        **axes,
        "ring": ring.values,
        "pipelines": pipelines,
        "runs": [json.loads(text) for text in runs],
        "rounds": rounds,
        "steps": steps,
    }
    refuse_too_large(len(compact_json(data)))
    return data


def step_key(data: Mapping[str, Any], setting: Mapping[str, Any]) -> str:
    """Return the name of a setting's entry in ``steps``.

    >>> setting = {"schedule": "1f1b", "devices": 2, "replicas": 4, "microbatches": 8, "ring": "FP16", "overlap": True}
    >>> step_key({"ring": ["FP32", "FP16"]}, setting)
    '1f1b/2/8/4/1/1'
    """
    sizes = "/".join(str(setting[name]) for name in ("schedule", "devices", "microbatches", "replicas"))
    return f"{sizes}/{data['ring'].index(setting['ring'])}/{int(setting['overlap'])}"


def _all_steps(axes: Mapping[str, list[Any]], ring: RingCosts, costs: Costs, optimiser: float) -> Iterator[tuple[str, HybridStep | str]]:
    """Yield the name of every combination with its step, or with the sentence why it cannot run."""
    for name, devices, microbatches in product(axes["schedule"], axes["devices"], axes["microbatches"]):
        refusal = REGISTRY[name].refusal(devices, microbatches, REGISTRY[name].fewest_chunks)
        for replicas, place, overlap in product(axes["replicas"], range(len(ring.values)), axes["overlap"]):
            key = f"{name}/{devices}/{microbatches}/{replicas}/{place}/{int(overlap)}"
            why_not = refusal or _too_many_operations(name, devices, replicas, microbatches)
            if why_not:
                yield key, why_not
            else:
                schedule = build(name, devices, microbatches)
                yield key, hybrid_step(schedule, costs, replicas, overlap=overlap, optimiser=optimiser, **ring.arguments[place])


def _too_many_operations(name: str, devices: int, replicas: int, microbatches: int) -> str | None:
    """Return a sentence if a step has more operations than a browser can draw, otherwise None."""
    stages, copies = devices * REGISTRY[name].fewest_chunks, REGISTRY[name].copies
    most = 3 * stages * microbatches + 2 * copies * (copies * replicas - 1) * stages + devices  # of one replica with split backwards
    if replicas * most <= MOST_OPS:
        return None
    sizes = f"{counted(devices, 'device')} x {counted(replicas, 'replica')} x {counted(microbatches, 'microbatch')}"
    return f"{sizes} have more operations than the {MOST_OPS:,} that can be drawn; try fewer microbatches or replicas"


def _pipeline_entry(step: HybridStep) -> Data:
    """Return what all replicas share: orders, peaks, and the messages of each row."""
    schedule, devices, sends = step.timeline.schedule, step.mesh.stages, _spans_of_kinds(step, "send")
    first = sends.where(sends.device < devices)
    return {
        "orders": [" ".join(map(turn_text, order)) for order in schedule.turns[:devices]],
        "peak": nine_digits(step.peak_activations[:devices]),
        "chunks": schedule.chunks,
        "messages": np.stack([first.row, first.peer], 1).tolist(),
    } | ({"copy": schedule.copy_of.tolist()} if schedule.copies > 1 else {})


def _hop_entries(step: HybridStep) -> list[Data]:
    """Return the hops of the ring of stage 0; the rings of all stages are the same."""
    hops = _spans_of_kinds(step, "reduce-scatter", "all-gather")
    ring = hops.where(hops.stage == 0)
    ranks = [replica * step.mesh.stages + path[0] for replica in range(step.mesh.replicas) for path in step.timeline.schedule.paths]
    entries = []
    for kind, number in dict.fromkeys(zip(ring.kind.tolist(), ring.step.tolist(), strict=True)):
        sends = ring.where((ring.kind == kind) & (ring.step == number))
        sends = sends.where(np.argsort([ranks.index(rank) for rank in sends.device]))
        to = [ranks.index(rank) for rank in sends.peer]
        entries.append({"kind": SPAN_KINDS[kind], "step": number, "piece": sends.chunk.tolist(), "to": to})
    return entries


def _step_entry(step: HybridStep, runs: dict[str, int]) -> Data:
    """Return the entry of one step; new times of operations are added to ``runs``."""
    mesh, timeline = step.mesh, step.timeline
    starts, ends = (np.split(times, mesh.replicas) for times in (timeline.start, timeline.end))
    texts = (compact_json({"start": nine_digits(start), "end": nine_digits(end)}) for start, end in zip(starts, ends, strict=True))
    optimiser = _spans_of_kinds(step, "optimiser")
    hops = _spans_of_kinds(step, "reduce-scatter", "all-gather")
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
        "rings": _ring_entries(hops, step),
        "optimiser": nine_digits(optimiser.start[: mesh.stages]),
        **dict(zip(figures, nine_digits(figures.values()), strict=True)),
    }


def _ring_entries(hops: Spans, step: HybridStep) -> list[list[Any]]:
    """Return device (or devices), stage, start and the bytes of each piece, if they are known, of every ring."""
    rings: dict[int, list[Any]] = {}
    for device in range(step.mesh.stages):
        own = hops.where(hops.device == device)
        for stage in dict.fromkeys(own.stage.tolist()):
            ring = own.where(own.stage == stage)
            nbytes = [size for _, size in sorted(set(zip(ring.chunk.tolist(), ring.nbytes.tolist(), strict=True)))]
            devices = [path[stage] for path in step.timeline.schedule.paths]
            place, known = devices if len(devices) > 1 else device, nbytes if min(nbytes) >= 0 else []
            rings.setdefault(stage, [place, stage, nine_digits([ring.start.min()])[0], known])
    return list(rings.values())


def _spans_of_kinds(step: HybridStep, *kinds: str) -> Spans:
    """Return the spans of these kinds: what the devices of a step do besides operations."""
    spans = step.timeline.spans
    if spans is None:
        raise HybridLabError("the timeline of this step has no spans beside its operations", "no-spans")
    return spans.of(*kinds)
