"""The schedule editor: the reader writes the order of each device. After each key, the editor checks the text and draws its timeline."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import traitlets

from hybridlab.checks import checked_text, counted, short_repr, true_or_false, whole_number
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.schedules import REGISTRY, build
from hybridlab.simulation import simulate
from hybridlab.timeline import Timeline
from hybridlab.widgets.choices import costs_of_one_setting
from hybridlab.widgets.page_data import MOST_OPS, Data, compact_json, digest, nine_digits, operation_kinds, refuse_too_large
from hybridlab.widgets.scripts import FromFiles, script_of, style_sheet
from hybridlab.widgets.view import Checked, View, shown_first

LONGEST = 100_000  # largest number of characters of a text
SIZES = MappingProxyType({"devices": 4, "microbatches": 8, "chunks": 1})
TIMES = MappingProxyType({"forward": 1.0, "backward": 2.0, "weight_share": 0.5, "p2p": 0.0, "overlap": 0.0})
# The first two goals of every puzzle. An editor without a puzzle has only these goals.
GOALS = (("complete", "has every operation once"), ("runs", "can run: no device waits for ever"))


class ScheduleEditor(View):
    r"""A text field for a schedule. The view shows the timeline of the schedule, its faults and the reached goals.

    The page itself checks and simulates each text, so the view works without a running kernel. The trait ``text`` has one line for each
    device, in any form that :meth:`Schedule.parse` reads, such as the CSV that "Save CSV" writes. It changes with every key. Python can
    observe and set ``text``. If the text is not a schedule, ``schedule`` and ``timeline`` raise an error.

    Parameters
    ----------
    puzzle : object, optional
        The puzzle to solve: an object whose method ``data()`` returns a dict with sizes, costs, a start text and goals; or this dict. An
        example is ``hybridlab.course.puzzles.PUZZLES["two-devices"]``. Without a puzzle, the arguments below set the sizes and the costs.
    devices, microbatches, chunks : int, optional
        The sizes. The defaults are 4, 8 and 1.
    forward, backward, weight_share, p2p, overlap : float or sequence of float, optional
        As in :class:`Costs`, for one setting. By default, a forward takes 1 and a backward takes 2, without latency and overlap.
    unit : str or None
        The unit of all times, as in :class:`Costs`. A puzzle has its own unit.
    show : mapping or None
        The first setting, such as ``{"text": "device 0: 0F0 0B0"}``.

    Raises
    ------
    HybridLabError
        There are a puzzle and also sizes or costs (``conflicting-arguments``), the puzzle lacks an entry (``missing-argument``), or a size,
        a cost or a text is invalid.

    Examples
    --------
    >>> editor = ScheduleEditor(devices=2, microbatches=1)
    >>> editor  # doctest: +ELLIPSIS
    <ScheduleEditor: 2 devices, 1 microbatch, 1 chunk, data ...; text ...>
    >>> editor.text = "device 0: 0F0 0B0\ndevice 1: 1F0 1B0"
    >>> editor.timeline.makespan
    6.0
    """

    SETTING = ("text",)
    _esm = FromFiles(script_of, "schedule_editor.js")
    _css = FromFiles(style_sheet, "editor", files=("timeline.css", "player.css", "schedule_editor.css"))

    data = traitlets.Dict(read_only=True).tag(sync=True)
    text = Checked("").tag(sync=True)

    def __init__(
        self,
        puzzle: Any = None,
        *,
        devices: int | None = None,
        microbatches: int | None = None,
        chunks: int | None = None,
        forward: Any = None,
        backward: Any = None,
        weight_share: Any = None,
        p2p: float | None = None,
        overlap: float | None = None,
        unit: str | None = "ms",
        show: Mapping[str, Any] | None = None,
    ) -> None:
        sizes = {"devices": devices, "microbatches": microbatches, "chunks": chunks}
        times = {"forward": forward, "backward": backward, "weight_share": weight_share, "p2p": p2p, "overlap": overlap}
        asked = {name: value for name, value in (sizes | times).items() if value is not None}
        given = _sizes_and_costs(asked, unit) if puzzle is None else _puzzle_data(puzzle, asked)
        self._costs = costs_of_one_setting(**given["costs"], unit=given["unit"] or None)
        data = given | _costs_by_device(self._costs, given["devices"]) | _kinds_and_starts(given)
        refuse_too_large(len(compact_json(data)), "this editor is", "give smaller sizes")  # checked before the page gets the data
        self._digest = digest(data)
        self.set_trait("data", data)
        super().__init__(**({"text": data["starts"][0]["text"]} | shown_first(show, self.SETTING, '{"text": "0F0 0B0"}')))

    @property
    def schedule(self) -> Schedule:
        """The schedule in the text. Raises :class:`InvalidSchedule` or :class:`Deadlock` if the text is not a valid schedule."""
        return Schedule.parse(self.text, name="yours")

    @property
    def timeline(self) -> Timeline:
        """The timeline of the schedule with the costs of this editor. Raises an error if the text is not a valid schedule."""
        return simulate(self.schedule, self._costs)

    def checked(self, name: str, value: Any) -> str:
        """Return a text with the line ends of Unix, or raise an error for a value that is not a text or is too long."""
        text = checked_text(value, name).replace("\r\n", "\n").replace("\r", "\n")
        if len(text) > LONGEST:
            raise HybridLabError(f"{name} must have at most {LONGEST:,} characters, not {len(text):,}", "too-large")
        return text

    def still(self) -> Any:
        """Return the timeline of the text as a figure."""
        from hybridlab.plot import timeline

        return timeline(self.timeline)

    def __repr__(self) -> str:
        """Return the puzzle, the sizes, the digest of the data and the digest of the text.

        The text is the same in every run, because outputs that are stored in notebooks contain it.
        """
        name = f" {self.data['name']}" if self.data["puzzle"] else ""
        things = {"devices": "device", "microbatches": "microbatch", "chunks": "chunk"}
        sizes = (counted(self.data[size], thing) for size, thing in things.items())
        return f"<ScheduleEditor{name}: {', '.join(sizes)}, data {self._digest}; text {digest({'text': self.text})}>"


def _sizes_and_costs(asked: Mapping[str, Any], unit: str | None) -> Data:
    """Return the data of an editor without a puzzle. Its two goals: the schedule is complete, and the schedule can run."""
    goals = [{"name": name, "words": words, "makespan": None, "memory": None} for name, words in GOALS]
    sizes = {name: whole_number(asked.get(name, usual), name) for name, usual in SIZES.items()}
    costs = {name: asked.get(name, usual) for name, usual in TIMES.items()}
    about = {"name": "", "title": "", "sentence": "", "memory": None, "split": True, "start": None}
    return {"puzzle": False, "costs": costs, "unit": unit or "", "goals": goals} | sizes | about


def _puzzle_data(puzzle: Any, asked: Mapping[str, Any]) -> Data:
    """Return the data of a puzzle. Raise an error if an entry is missing, or if ``asked`` also has sizes or costs."""
    if asked:
        raise HybridLabError(f"the puzzle has its own sizes and costs: leave out {', '.join(asked)}", "conflicting-arguments")
    data = puzzle if isinstance(puzzle, Mapping) else getattr(puzzle, "data", lambda: None)()
    if not isinstance(data, Mapping):
        wanted = 'a puzzle such as hybridlab.course.puzzles.PUZZLES["two-devices"], or its data()'
        raise HybridLabError(f"puzzle must be {wanted}, not {short_repr(puzzle)}", "wrong-type")
    entries = ("name", "title", "sentence", *SIZES, "costs", "unit", "memory", "split", "start", "goals")
    if lacking := [entry for entry in entries if entry not in data]:
        raise HybridLabError(f"the puzzle lacks {', '.join(lacking)}: its data() must have {', '.join(entries)}", "missing-argument")
    texts = {name: checked_text(data[name], f"the puzzle's {name}") for name in ("name", "title", "sentence", "start")}
    sizes = {size: whole_number(data[size], size) for size in SIZES}
    rest = {"puzzle": True, "split": true_or_false(data["split"], "split"), "unit": data["unit"] or ""}
    return {name: data[name] for name in ("costs", "memory", "goals")} | texts | sizes | rest


def _costs_by_device(costs: Costs, devices: int) -> Data:
    """Return the costs in the form for the script: times for each device, one latency and one overlap."""
    costs.table(devices)  # raises if the costs are for another number of devices
    each = {name: np.broadcast_to(getattr(costs, name), devices) for name in ("forward", "backward", "weight_share")}
    single = {name: float(getattr(costs, name).item()) for name in ("p2p", "overlap")}
    return {"costs": {name: nine_digits(values.tolist()) for name, values in each.items()} | single}


def _kinds_and_starts(given: Data) -> Data:
    """Return the words and colours of operations, and the start texts: the puzzle's text, and the schedules of this size."""
    devices, microbatches, chunks = (given[size] for size in SIZES)
    # 3: with split backwards, each stage has a forward, an input gradient and a weight gradient for each microbatch.
    operations = 3 * devices * microbatches * chunks
    if operations > MOST_OPS:
        message = f"an editor draws at most {MOST_OPS:,} operations, not {operations:,}: give fewer devices, microbatches or chunks"
        raise HybridLabError(message, "too-large")
    fitting = [family for family in REGISTRY.values() if family.refusal(devices, microbatches, chunks) is None]
    if given["puzzle"]:
        fitting = [family for family in fitting if family.copies == 1]  # a puzzle has one copy of the weights
    texts = [{"name": each.name, "title": each.title, "text": str(build(each.name, devices, microbatches, chunks))} for each in fitting]
    # A puzzle with only full backwards does not accept split backwards.
    if not given["split"]:
        texts = [text for text in texts if "W" not in text["text"]]
    lines = "\n".join(f"device {device}: " for device in range(devices))
    empty = {"name": "", "title": "empty lines", "text": lines}
    # The editor begins with the first text.
    own = [{"name": "start", "title": "the puzzle's start", "text": given["start"]}] if given["puzzle"] else []
    # 2 * chunks, because a text can have two copies of the weights, with different shades.
    return {"kinds": operation_kinds([chunks, 2 * chunks]), "starts": [*own, *texts, empty]}
