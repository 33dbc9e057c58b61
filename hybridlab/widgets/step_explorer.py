"""The step explorer: it shows one training step on all ranks of a mesh, from the first forward to the end of the optimiser."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import traitlets

from hybridlab.checks import counted, known_name, one_time, short_repr, true_or_false, whole_number
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.mesh import Mesh
from hybridlab.palette import SPAN_COLOURS
from hybridlab.schedule import Schedule
from hybridlab.schedule.text import turn_text
from hybridlab.schedules import REGISTRY, build
from hybridlab.step import HybridStep, hybrid_step
from hybridlab.step.step import ring_order
from hybridlab.timeline.spans import SPAN_KINDS, Spans
from hybridlab.widgets.choices import costs_of_one_setting, one_or_several, schedule_names, sorted_times, whole_numbers, wire_formats
from hybridlab.widgets.own_rings import OwnRings, offered_rings
from hybridlab.widgets.page_data import MOST_OPS, Data, compact_json, digest, nine_digits, operation_kinds, refuse_too_large
from hybridlab.widgets.scripts import FromFiles, script_of, style_sheet
from hybridlab.widgets.view import Checked, View, as_trait_error, shown_first
from hybridlab.wire import FP16, WireFormat

SIZES = ("devices", "replicas", "microbatches")
AXES = ("schedule", *SIZES, "ring", "overlap")
SPAN_WORDS = ("message sent", "message received", "reduce-scatter", "all-gather", "optimiser")


class StepExplorer(View):
    """A view of one training step on all ranks: pipelines, messages, the rings of all stages and the optimiser.

    All steps are in the trait ``data``, so the view works without a running kernel. The traits ``schedule``, ``devices``, ``replicas``,
    ``microbatches``, ``ring`` (the time of a ring step, or the name of a wire format) and ``overlap`` change with the controls. The traits
    ``rank`` and ``time`` change with the cursor. Python can observe and set all of them. If a new mesh does not contain the chosen rank,
    ``rank`` becomes 0.

    Parameters
    ----------
    schedules : str or iterable of str
        Names of the schedules from which the reader chooses. Each schedule has the smallest number of chunks that it supports.
    devices, replicas, microbatches : int or iterable of int
        The sizes from which the reader chooses: devices in one pipeline (K), replicas (D), and microbatches in each replica (M).
    forward, backward, weight_share, p2p, unit
        As in :class:`Costs`. Different costs on the ranks can show the effect of a slow replica.
    pair_overlap : float
        The argument ``overlap`` of :class:`Costs`.
    ring_step : float, iterable of float or None
        Times of one ring step from which the reader chooses, in ``unit``.
    link, gradient_bytes, wire
        As in :func:`hybrid_step`, instead of ``ring_step``. ``wire`` is one format, or several formats from which the reader chooses.
    overlap : bool or iterable of bool
        Whether the ring of a stage may run during the backwards of other stages.
    rings : mapping of str to callable, or None
        Title -> a function of ``rows`` and ``ring_time`` that returns when each ring runs, such as ``{0: (330, 450)}``. ``rows`` has a dict
        for each operation of all ranks, as from :meth:`Timeline.to_rows`. ``ring_time`` is the time of one ring. The titles are further
        values of the trait ``overlap``. If the rings of a function cannot run, the view says why.
    optimiser : float
        The time of the optimiser, in ``unit``.
    show : mapping or None
        The first setting, such as ``{"replicas": 4, "rank": 5, "time": 120}``. Other traits begin at their first value.

    Raises
    ------
    HybridLabError
        A value is wrong, no setting of the grid can run, or the data have more than 2 MB.

    Examples
    --------
    >>> explorer = StepExplorer(replicas=(1, 2), microbatches=8, forward=50, backward=80, ring_step=20)
    >>> explorer  # doctest: +ELLIPSIS
    <StepExplorer: 8 settings, data ...; gpipe, 2 devices, 1 replica, 8 microbatches, ring 20, no overlap; rank 0 at 0>
    >>> explorer.replicas = 2
    >>> explorer.step.makespan
    1210.0
    >>> late = lambda rows, ring_time: {stage: (1300, 1300 + ring_time) for stage in (0, 1)}
    >>> own = StepExplorer("1f1b", replicas=2, microbatches=8, forward=50, backward=80, ring_step=20, rings={"late": late})
    >>> own.overlap = "late"
    >>> own.step.makespan
    1340.0
    """

    SETTING = (*AXES, "rank", "time")
    _esm = FromFiles(script_of, "step_explorer.js")
    _css = FromFiles(style_sheet, "step", files=("timeline.css", "player.css", "step_explorer.css"))

    data = traitlets.Dict(read_only=True).tag(sync=True)
    schedule = Checked().tag(sync=True)
    devices = Checked().tag(sync=True)
    replicas = Checked().tag(sync=True)
    microbatches = Checked().tag(sync=True)
    ring = Checked().tag(sync=True)
    overlap = Checked().tag(sync=True)
    rank = Checked(0).tag(sync=True)
    time = Checked(0).tag(sync=True)

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
        rings: Mapping[str, Any] | None = None,
        optimiser: float = 0.0,
        unit: str | None = "ms",
        show: Mapping[str, Any] | None = None,
    ) -> None:
        sizes = {name: whole_numbers(value, name) for name, value in zip(SIZES, (devices, replicas, microbatches), strict=True)}
        overlaps = sorted({true_or_false(each, "each value of overlap") for each in one_or_several(overlap, "overlap")})
        self._rings = offered_rings(rings)
        axes: dict[str, list[Any]] = {"schedule": schedule_names(schedules), **sizes, "overlap": [*overlaps, *self._rings]}
        self._costs = costs_of_one_setting(
            forward=forward, backward=backward, weight_share=weight_share, p2p=p2p, overlap=pair_overlap, unit=unit
        )
        self._ring_costs = ring_costs(ring_step, link, gradient_bytes, wire, self._costs.unit)
        self._optimiser = optimiser
        data = step_data(axes, self._ring_costs, self._costs, optimiser, self._rings)
        self._digest = digest(data)
        self.set_trait("data", data)
        super().__init__(**self._first_setting(show))

    @property
    def step(self) -> HybridStep:
        """The step of the current setting.

        Raises :class:`UnsupportedSize` if the schedule does not support the size, or if the rings of a function cannot run.
        """
        schedule = build(self.schedule, self.devices, self.microbatches)
        ring = self._ring_costs.arguments[self.data["ring"].index(self.ring)]
        step = step_of_setting(schedule, self._costs, self.replicas, self.overlap, self._rings, optimiser=self._optimiser, **ring)
        if isinstance(step, str):
            raise UnsupportedSize(step, "unsupported-size")
        return step

    def checked(self, name: str, value: Any) -> Any:
        """Return the value of one trait. Raise an error if the explorer does not offer the value, or if it is no rank or no time."""
        if name == "rank":
            return whole_number(value, name, at_least=0)
        if name == "time":
            return nine_digits([one_time(value, "time")])[0]  # nine digits, the form that the page sends
        if name == "schedule":
            return known_name(value, self.data[name], "schedule of this explorer", any_case=True)
        plain = str(value) if isinstance(value, WireFormat) else value
        for each in self.data[name]:
            # True == 1 in Python, so a bool or a text matches only a value of its own type. Numbers of different types can match.
            alike = type(plain) is type(each) or not {bool, str} & {type(plain), type(each)}
            if alike and isinstance(plain, (bool, int, float, str, np.number)) and each == plain:
                return each
        known = ", ".join(map(str, self.data[name]))
        raise HybridLabError(f"this explorer has no step with {name} = {short_repr(value)}: choose from {known}", "out-of-range")

    def _first_setting(self, show: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the first setting: the values in ``show``, and otherwise the first values that can run."""
        asked = {name: self.checked(name, value) for name, value in shown_first(show, self.SETTING, '{"replicas": 2}').items()}
        choices = ([asked[name]] if name in asked else self.data[name] for name in AXES)
        settings = [dict(zip(AXES, values, strict=True)) for values in product(*choices)]
        entries = [self.data["steps"][step_key(self.data, setting)] for setting in settings]
        first = next((setting for setting, entry in zip(settings, entries, strict=True) if "refusal" not in entry), None)
        if first is None:
            raise HybridLabError(f"the explorer cannot begin with this setting: {entries[0]['refusal']}", "unsupported-size")
        return first | {name: asked.get(name, 0) for name in ("rank", "time")}

    @traitlets.validate("rank")
    def _check_rank(self, proposal: Any) -> int:
        """Return the rank, or raise an error if the mesh does not have it."""
        rank: int = proposal["value"]
        # Traitlets runs this check after all changes in a message from the page, so the size of the mesh is up to date.
        with as_trait_error():
            Mesh(self.devices, self.replicas).coordinates(rank)
        return rank

    @traitlets.observe("devices", "replicas")
    def _follow(self, _: Any) -> None:
        """Choose rank 0 if the new mesh does not contain the chosen rank."""
        if self.rank >= Mesh(self.devices, self.replicas).size:
            self.rank = 0

    def still(self) -> Any:
        """Return the timeline of the whole step as a figure."""
        from hybridlab.plot import timeline

        return timeline(self.step.timeline, activations=False)

    def __repr__(self) -> str:
        """Return the number of settings, the digest of the data and the current setting.

        The text is the same in every run, because outputs that are stored in notebooks contain it.
        """
        count = sum("refusal" not in entry for entry in self.data["steps"].values())
        numbers = {"device": self.devices, "replica": self.replicas, "microbatch": self.microbatches}
        sizes = ", ".join(counted(number, name) for name, number in numbers.items())
        overlap = {True: "overlap", False: "no overlap"}.get(self.overlap, f"rings of {self.overlap}")
        setting = f"{self.schedule}, {sizes}, ring {self.ring}, {overlap}"
        return f"<StepExplorer: {counted(count, 'setting')}, data {self._digest}; {setting}; rank {self.rank} at {self.time}>"


class RingCosts(NamedTuple):
    """The control for the cost of a ring step: a label, values, and for each value the arguments of :func:`hybrid_step`."""

    label: str
    values: list[Any]
    arguments: list[dict[str, Any]]


def ring_costs(ring_step: Any, link: Any, gradient_bytes: Any, wire: Any, unit: str | None = None) -> RingCosts:
    """Return the control for the cost of a ring step. Its values are times, or wire formats of gradients that are sent over a link.

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


def step_data(
    axes: Mapping[str, list[Any]], ring: RingCosts, costs: Costs, optimiser: float, rings: Mapping[str, OwnRings] | None = None
) -> Data:
    """Return one step for each combination of values on the axes.

    Parameters
    ----------
    axes : mapping of str to list
        The values of schedule, devices (in one pipeline), replicas, microbatches and overlap.
    ring : RingCosts
        The control for the cost of a ring step.
    costs : Costs
        The costs of all settings.
    optimiser : float
        The time of the optimiser, in the unit of the costs.
    rings : mapping of str to OwnRings, or None
        The functions that give times of rings, by title. The titles are values of the axis overlap.

    Returns
    -------
    dict
        Plain data for ``json.dumps``. Data that several settings or replicas share are stored only once:

        - ``costs`` has the costs of all settings. ``forward``, ``backward`` and ``weight_share`` are lists with one value, with a value
          for each device of a pipeline, or with a value for each rank. The script computes the times of the operations from them
        - ``pipelines`` has an entry for each "schedule/devices/microbatches". It has ``orders`` (one text for each device), and ``peak``
          (the peak activations of each device)
        - ``rounds`` has the hops of a ring for each number of ranks. A hop has ``kind`` and ``step``. For each rank it has the ``piece``
          that the rank sends, and in ``to`` the position of the receiver in the ring
        - ``steps`` has an entry for each "schedule/devices/microbatches/replicas/index of the ring's cost/index of overlap". ``rings`` has
          [device, or a list with the device of each copy; stage; start; end; bytes of each piece if known], in the order in which the
          rings run. ``hop`` is the time of a hop, ``optimiser`` has one start for each device, and ``update`` is the time of the
          optimiser. The times of rings and optimisers have all their digits, because the script writes them into files. The other
          keys are results of the step, such as the makespan. A setting that cannot run has only ``refusal``, a sentence that says why

    Raises
    ------
    HybridLabError
        A value is wrong, no setting of the grid can run, or the data have more than 2 MB.
    """
    pipelines, rounds, steps, size = Data(), Data(), Data(), 0
    for key, step in _all_steps(axes, ring, costs, optimiser, rings or {}):
        if isinstance(step, str):
            steps[key] = {"refusal": step}
            continue
        # A schedule can have several copies of each stage, and all of them take part in the stage's ring.
        pipeline, ranks = key.rsplit("/", 3)[0], str(step.mesh.replicas * step.timeline.schedule.copies)
        # Many settings share a pipeline, so store each pipeline once. Check the size here, to stop a large grid early.
        if pipeline not in pipelines:
            pipelines[pipeline] = _pipeline_entry(step)
            size += len(compact_json(pipelines[pipeline]))
            refuse_too_large(size)
        if ranks not in rounds:
            rounds[ranks] = _hop_entries(step)
        steps[key] = _step_entry(step, optimiser)
    if all("refusal" in entry for entry in steps.values()):
        raise HybridLabError(f"no setting of this grid can run: {next(iter(steps.values()))['refusal']}", "unsupported-size")
    data = {
        "unit": costs.unit or "",  # "" means no unit for the script
        "label": ring.label,
        "costs": _cost_entries(costs),
        "kinds": operation_kinds(REGISTRY[name].fewest_chunks * REGISTRY[name].copies for name in axes["schedule"]),
        "spans": {kind: {"words": words, "colour": SPAN_COLOURS.get(kind)} for kind, words in zip(SPAN_KINDS, SPAN_WORDS, strict=True)},
        "titles": {name: REGISTRY[name].title for name in axes["schedule"]},
        **axes,
        "ring": ring.values,
        "pipelines": pipelines,
        "rounds": rounds,
        "steps": steps,
    }
    refuse_too_large(len(compact_json(data)))
    return data


def step_key(data: Mapping[str, Any], setting: Mapping[str, Any]) -> str:
    """Return the key of a setting in ``steps``.

    >>> setting = {"schedule": "1f1b", "devices": 2, "replicas": 4, "microbatches": 8, "ring": "FP16", "overlap": True}
    >>> step_key({"ring": ["FP32", "FP16"], "overlap": [False, True]}, setting)
    '1f1b/2/8/4/1/1'
    """
    sizes = "/".join(str(setting[name]) for name in ("schedule", "devices", "microbatches", "replicas"))
    return f"{sizes}/{data['ring'].index(setting['ring'])}/{data['overlap'].index(setting['overlap'])}"


def step_of_setting(
    schedule: Schedule, costs: Costs, replicas: int, overlap: bool | str, rings: Mapping[str, OwnRings], **arguments: Any
) -> HybridStep | str:
    """Return the step of a setting, or a sentence why its rings cannot run. ``overlap`` is a bool, or a title in ``rings``."""
    step = hybrid_step(schedule, costs, replicas, overlap=bool(overlap), **arguments)
    return rings[overlap].step(step) if isinstance(overlap, str) else step


def _all_steps(
    axes: Mapping[str, list[Any]], ring: RingCosts, costs: Costs, optimiser: float, rings: Mapping[str, OwnRings]
) -> Iterator[tuple[str, HybridStep | str]]:
    """Yield the key of every combination with its step, or with a sentence why the combination cannot run."""
    for name, devices, microbatches in product(axes["schedule"], axes["devices"], axes["microbatches"]):
        refusal = REGISTRY[name].refusal(devices, microbatches, REGISTRY[name].fewest_chunks)
        schedule: Schedule | None = None
        for replicas, place, (turn, overlap) in product(axes["replicas"], range(len(ring.values)), enumerate(axes["overlap"])):
            key = f"{name}/{devices}/{microbatches}/{replicas}/{place}/{turn}"
            why_not = refusal or _too_many_operations(name, devices, replicas, microbatches)
            if why_not:
                yield key, why_not
            else:
                schedule = schedule or build(name, devices, microbatches)  # built once for each size, and only if a setting can run
                yield key, step_of_setting(schedule, costs, replicas, overlap, rings, optimiser=optimiser, **ring.arguments[place])


def _too_many_operations(name: str, devices: int, replicas: int, microbatches: int) -> str | None:
    """Return a refusal if a step has more operations than a browser can draw, else None."""
    stages, copies = devices * REGISTRY[name].fewest_chunks, REGISTRY[name].copies
    # An upper bound for one replica, without building the schedule: operations with split backwards, hops, optimisers.
    most = 3 * stages * microbatches + 2 * copies * (copies * replicas - 1) * stages + devices
    if replicas * most <= MOST_OPS:
        return None
    sizes = f"{counted(devices, 'device')} x {counted(replicas, 'replica')} x {counted(microbatches, 'microbatch')}"
    return f"{sizes} have more operations than the {MOST_OPS:,} that can be drawn; try fewer microbatches or replicas"


def _cost_entries(costs: Costs) -> Data:
    """Return the costs with all their digits, because the script calculates with the costs."""
    each = {name: getattr(costs, name).ravel().tolist() for name in ("forward", "backward", "weight_share")}
    return {**each, "p2p": costs.p2p.item(), "overlap": costs.overlap.item()}


def _pipeline_entry(step: HybridStep) -> Data:
    """Return the data that all replicas share: the orders and the peaks."""
    schedule, devices = step.timeline.schedule, step.mesh.stages
    # The devices of the first replica come first, and all replicas run the same order.
    orders = [" ".join(map(turn_text, order)) for order in schedule.turns[:devices]]
    return {"orders": orders, "peak": nine_digits(step.peak_activations[:devices])}


def _hop_entries(step: HybridStep) -> list[Data]:
    """Return the hops of the ring of stage 0. The rings of all other stages have the same hops."""
    hops = _spans_of_kinds(step, "reduce-scatter", "all-gather")
    ring = hops.where(hops.stage == 0)
    ranks = [replica * step.mesh.stages + path[0] for replica in range(step.mesh.replicas) for path in step.timeline.schedule.paths]
    entries = []
    for kind, number in dict.fromkeys(zip(ring.kind.tolist(), ring.step.tolist(), strict=True)):
        sends = ring.where((ring.kind == kind) & (ring.step == number))
        # The script needs the senders in the order of the ring, not sorted by rank.
        sends = sends.where(np.argsort([ranks.index(rank) for rank in sends.device]))
        to = [ranks.index(rank) for rank in sends.peer]
        entries.append({"kind": SPAN_KINDS[kind], "step": number, "piece": sends.chunk.tolist(), "to": to})
    return entries


def _step_entry(step: HybridStep, optimiser: float) -> Data:
    """Return the entry of one step in ``steps``."""
    hops = _spans_of_kinds(step, "reduce-scatter", "all-gather")
    figures = {
        "makespan": step.makespan,
        "all_reduce": step.all_reduce_time,
        "exposed": step.exposed_communication,
        "share": step.communication_share,
        "speedup": step.speedup,
        "efficiency": step.efficiency,
        "single": step.single_device_time,
        "hop": (hops.end - hops.start).max(initial=0.0),  # one replica has no ring
    }
    return {
        "rings": _ring_entries(hops, step),
        # The ring of a stage ends at the same time in all replicas, so store only the first replica.
        "optimiser": _spans_of_kinds(step, "optimiser").start[: step.mesh.stages].tolist(),
        "update": step.timeline.schedule.copies * float(optimiser),  # a device updates each copy of its weights
        **dict(zip(figures, nine_digits(figures.values()), strict=True)),
    }


def _ring_entries(hops: Spans, step: HybridStep) -> list[list[Any]]:
    """Return for every ring its device (or list of devices), stage, start, end, and the bytes of each piece (empty if unknown)."""
    schedule, entries = step.timeline.schedule, []
    for stage in ring_order(schedule).tolist() if hops.size else ():
        ring = hops.where(hops.stage == stage)
        nbytes = [size for _, size in sorted(set(zip(ring.chunk.tolist(), ring.nbytes.tolist(), strict=True)))]
        devices = [path[stage] for path in schedule.paths]
        # A size of -1 means that the bytes are unknown.
        place, known = devices if len(devices) > 1 else devices[0], nbytes if min(nbytes) >= 0 else []
        entries.append([place, stage, float(ring.start.min()), float(ring.end.max()), known])
    return entries


def _spans_of_kinds(step: HybridStep, *kinds: str) -> Spans:
    """Return the spans of these kinds. A span is a message, a hop of a ring, or an optimiser."""
    spans = step.timeline.spans
    if spans is None:
        raise HybridLabError("the timeline of this step has no spans beside its operations", "no-spans")
    return spans.of(*kinds)
