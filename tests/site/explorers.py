"""Read what a timeline explorer on a page draws, and compare it with what the library computes."""

import copy
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from browser import held
from live_widgets import LONG_TEXTS
from playwright.sync_api import Locator, Page

from hybridlab import REGISTRY, Costs, Timeline, build, simulate
from hybridlab.course.comparisons import stored_steps

WIDGET = "application/vnd.jupyter.widget"
STATE = re.compile(r'(<script type="application/vnd.jupyter.widget-state\+json">)(.*?)(</script>)', re.DOTALL)
VIEW = re.compile(r'<script type="application/vnd.jupyter.widget-view\+json">(.*?)</script>', re.DOTALL)
SIZES = ("devices", "microbatches", "chunks")
CHOICES = ("schedule", "compare", "slow_device")
TIMES = ("p2p", "forward", "backward", "weight_share", "slowdown")
NAMES = ("schedule", "compare", *SIZES, "p2p", "forward", "backward", "weight_share", "slow_device", "slowdown")
SPOKEN = re.compile(r"(?:[^,:]+, )?(\w+): the .*?, device (\d+), from ([\d.e+-]+) to ([\d.e+-]+?)(?: [^\d.]\S*)?\. (.*)")
COPY = re.compile(r"of the (first|second) copy of the weights, device")
PAIR = re.compile(r"^It runs together with (\w+)\. ")
CAUSE = re.compile(r"for its input (\w+)|its device, which ran (\w+)|(for nothing)")
MINE = "mine"  # the title of a student's function in a lab; on the site 1F1B takes its place, and Interleaved for several chunks
MEASURED = ", measured"
NOT_MEASURED = "this step was measured with 4 devices and 8 microbatches"
PIXELS = 0.011  # the drawing rounds to hundredths of a pixel
SHOWN = """(root) => {
  const told = (op) => {
    op.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    return root.querySelector(".told").textContent;
  };
  const numbers = (element, ...names) => names.map((name) => Number(element.getAttribute(name)));
  const box = (polygon) => {
    const [x, y, right, , , floor] = polygon.getAttribute("points").split(/[ ,]/).map(Number);
    return [x, y, right - x, floor - y];
  };
  const panels = [...root.querySelectorAll(".panel")].map((panel) => ({
    refusal: panel.querySelector(".refused p")?.textContent ?? "",
    end: panel.querySelector("line.end") ? numbers(panel.querySelector("line.end"), "x1")[0] : 0,
    bars: [...panel.querySelectorAll(".op")].map((op) => [told(op), op.querySelector("polygon")])
      .map(([words, body]) => [words, ...box(body), body.getAttribute("fill")]),
  }));
  const rows = [...root.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent));
  root.querySelector(".picture").dispatchEvent(new PointerEvent("pointerleave"));
  const fields = [...root.querySelectorAll(".fields :is(select, input[type=range])")];
  const value = (field) => field.tagName === "SELECT" ? field.value : Number(field.getAttribute("aria-valuetext"));
  return { panels, rows, setting: Object.fromEntries(fields.map((field) => [field.id.split("-").pop(), value(field)])) };
}"""

TYPE = """(root, [name, value]) => {
  const field = root.querySelector(`input[type=number][id$=-${name}-any]`);
  if (!field.checkVisibility()) throw new Error(`the field of ${name} cannot be used`);
  field.value = value;
  field.dispatchEvent(new Event("change", { bubbles: true }));
}"""
SCHEDULE = "(root) => root.querySelector('select[id$=-schedule]').value"
CHOOSE = """(root, [name, value]) => {
  const control = root.querySelector(`select[id$=-${name}], input[type=range][id$=-${name}]`);
  if (!control.checkVisibility() || control.disabled) throw new Error(`the control of ${name} cannot be used`);
  control.value = value;
  if (control.value !== value) throw new Error(`the control of ${name} takes no ${value}`);
  for (const event of ["input", "change"]) control.dispatchEvent(new Event(event, { bubbles: true }));
}"""


@dataclass(frozen=True)
class Explorer:
    """The view of an explorer on a page, and the data that the page holds for it."""

    view: Locator
    data: Mapping[str, Any]

    def shown(self) -> Any:
        """Return the bars of each panel, the rows of the table, and the setting of the controls.

        A bar is a list of its words, x, y, width, height and colour.
        """
        return self.view.evaluate(SHOWN)

    def control(self, name: str) -> Locator:
        return self.view.locator(f"select[id$=-{name}], input[type=range][id$=-{name}]")

    def choose(self, **setting: Any) -> None:
        for name, value in setting.items():
            if name in CHOICES:
                if name == "slow_device" or len(self.data["schedules"]) > 1:  # one schedule has no choice, and nothing to compare with
                    self.view.evaluate(CHOOSE, [name, value])
                continue
            if name in TIMES:
                if self.control(name).is_visible():
                    self.view.evaluate(TYPE, [name, f"{value:g}"])
                continue
            values = self.chunks(self.view.evaluate(SCHEDULE)) if name == "chunks" else self.data[name]
            if len(values) > 1:  # a control with one value has no slider
                self.view.evaluate(CHOOSE, [name, str(values.index(value))])

    def chunks(self, schedule: str) -> list[int]:
        return next(list(each["chunks"]) for each in self.data["schedules"] if each["name"] == schedule)

    def refused(self) -> list[str]:
        """Return the settings of the controls that the library refuses, as "schedule/devices/microbatches/chunks"."""
        keys = (key for key, entry in self.data["pipelines"].items() if "refusal" in entry)
        return [key for key in keys if int(key.split("/")[3]) in self.chunks(key.split("/")[0])]

    def timelines(self, setting: Mapping[str, Any]) -> list[Timeline | str]:
        """Return what the library computes for a setting: for each schedule its timeline, or the error message that refuses it."""
        said: list[Timeline | str] = []
        for name in filter(None, (setting["schedule"], setting["compare"])):
            size = setting["devices"], setting["microbatches"]
            if name.endswith(MEASURED):
                fits = size == (4, 8)  # the size of the stored steps
                said.append(stored_steps("equal")[name.removesuffix(MEASURED)][0] if fits else NOT_MEASURED)
                continue
            count = setting["chunks"] if setting["chunks"] in self.chunks(name) else self.chunks(name)[0]
            known = ("interleaved" if count > 1 else "1f1b") if name == MINE else name
            refusal = REGISTRY[known].refusal(*size, count)
            said.append(refusal or simulate(build(known, *size, count), self.costs(setting)))
        return said

    def costs(self, setting: Mapping[str, Any]) -> Costs:
        """Return the costs that the controls show."""
        times = {name: setting[name] for name in ("forward", "backward", "weight_share", "p2p")}
        costs = Costs(**times, overlap=self.data["overlap"])
        slow = setting["slow_device"]
        return costs if slow == "none" else costs.slower([int(slow)], setting["slowdown"], of=setting["devices"])


def data_of(html: str) -> list[Any]:
    """Return the data of a page's explorers, in the order of their views; ``html`` is the text of the page."""
    states = state_of(html)["state"]
    shown = (states[json.loads(match[1])["model_id"]]["state"] for match in VIEW.finditer(html))
    return [state["data"] for state in shown if "pipelines" in state.get("data", {})]


def explorers_of(page: Page, html: str) -> list[Explorer]:
    views = page.locator(".hybridlab-explorer").all()
    return [Explorer(held(view), data) for view, data in zip(views, data_of(html), strict=True)]


def state_of(html: str) -> Any:
    """Return the state of a page's widgets, each with its own script, which the page has once for all widgets of a kind."""
    match = STATE.search(html)
    assert match, "the page holds no state of widgets"
    whole = json.loads(match[2])
    for entry in whole["state"].values():
        for name, value in entry["state"].items():
            if name in LONG_TEXTS and isinstance(value, dict):
                entry["state"][name] = whole["state"][value["as"]]["state"][name]
    return whole


def with_state(html: str, change: Callable[[Any], Any]) -> str:
    """Return the page after ``change`` has altered the states of its widgets (model id -> state) in place.

    ``change`` gets the states in the order of their views, followed by the states without a view. In the page they can be in any order.
    """
    whole = state_of(html)
    names = dict.fromkeys([*(json.loads(match[1])["model_id"] for match in VIEW.finditer(html)), *whole["state"]])
    change({name: whole["state"][name]["state"] for name in names})
    return STATE.sub(lambda match: match[1] + json.dumps(whole).replace("</", "<\\/") + match[3], html)


def drawn_again(html: str, chosen: Callable[[Any], bool], changes: Sequence[Callable[[Any], Any]]) -> str:
    """Return a page with the first widget for whose state ``chosen`` is true, as it is, and then once more after each of these changes."""
    states = {name: entry["state"] for name, entry in state_of(html)["state"].items()}
    first = next(name for match in VIEW.finditer(html) if chosen(states[name := json.loads(match[1])["model_id"]]))
    entry = {"model_module": "anywidget", "state": states[first]}
    drawn = {first: entry}
    for number, change in enumerate(changes):
        drawn[f"changed{number}"] = copy.deepcopy(entry)
        state = drawn[f"changed{number}"]["state"]
        change(state)
        for name in LONG_TEXTS:
            if state[name] == states[first][name]:
                state[name] = {"as": first}
    views = "".join(f'<script type="{WIDGET}-view+json">{json.dumps({"model_id": name})}</script>' for name in drawn)
    whole = json.dumps({"state": drawn}).replace("</", "<\\/")
    return alone_on_a_page(f'{views}<script type="{WIDGET}-state+json">{whole}</script>')


def bare(html: str) -> str:
    """Return a page with only the widgets of this page and the scripts that draw them, in a column of the same width."""
    return alone_on_a_page("".join(match[0] for kind in (VIEW, STATE) for match in kind.finditer(html)))


def alone_on_a_page(scripts: str) -> str:
    head = '<meta charset="utf-8"><title>Widgets</title><link rel="icon" href="data:,"><style>article { max-width: 688px }</style>'
    script = '<script defer src="../_static/live_widgets.js"></script>'
    return f'<!DOCTYPE html><html lang="en"><head>{head}{script}</head><body><article>{scripts}</article></body></html>'


def is_right(explorer: Explorer) -> None:
    """Raise AssertionError unless everything shown equals what the library computes for the setting of the controls.

    The drawing, the sentences and the tables are compared.
    """
    shown = explorer.shown()
    said = explorer.timelines(shown["setting"])
    assert len(shown["panels"]) == len(shown["rows"]) == len(said)
    scales = []
    for panel, row, expected in zip(shown["panels"], shown["rows"], said, strict=True):
        if isinstance(expected, str):
            assert panel["refusal"].rstrip(".").lower() == expected.lower()
            assert not panel["bars"]
            continue
        peaks = ", ".join(f"{each:.6g}" for each in expected.peak_activations)
        assert row[3] == peaks
        assert abs(float(row[1]) - expected.makespan) <= 5.001e-6 * expected.makespan  # a script rounds a tie up, Python to even
        assert abs(float(row[2]) - expected.bubble_ratio) <= 5.001e-4
        bars_are_right(panel, expected)
        scales.append(panel["end"] / expected.makespan)
    assert not scales or max(scales) - min(scales) <= 1e-3 * max(scales), "both timelines share one axis of time"


def bars_are_right(panel: Any, expected: Timeline) -> None:
    """Raise AssertionError unless the positions and the words of a panel's bars agree with the operations."""
    scale = panel["end"] / expected.makespan  # px per unit of time
    ops = [str(op) for op in expected.ops]
    measured = any(expected is step for found in stored_steps("equal").values() for step in found)
    waited = causes_in(expected) if measured else [ops[row] if row >= 0 else "nothing" for row in expected.blocking_operation().tolist()]
    spoken = [SPOKEN.fullmatch(words) for words, *_ in panel["bars"]]
    assert all(spoken), "an operation is not told in words"
    told = [match.groups() for match in spoken if match]
    assert [text for text, *_ in told] == ops
    assert [int(device) for _, device, *_ in told] == expected.device.tolist()
    said = np.array([(start, end) for _, _, start, end, _ in told], dtype=float)
    wanted = np.stack([expected.start, expected.end], axis=1)
    assert np.all(np.abs(said - wanted) <= 5.001e-6 * np.abs(wanted))  # six digits; a script rounds a tie up, Python to even
    assert [copy and copy[1] for copy in map(COPY.search, (words for words, *_ in panel["bars"]))] == copies_of(expected)
    others = [PAIR.search(words) for *_, words in told]
    assert [match and match[1] for match in others] == partners_of(expected)
    causes = [CAUSE.search(words) for *_, words in told]
    assert [match and (match[1] or match[2] or "nothing") for match in causes] == waited
    x, y, width, height = np.array([numbers for _, *numbers, _ in panel["bars"]]).T
    tolerance = PIXELS * (1 + expected.end / expected.makespan)  # rounding of the bar, and of the axis from which the scale is read
    assert np.all(np.abs(x - expected.start * scale) <= tolerance)
    assert np.all(np.abs(width - np.maximum((expected.end - expected.start) * scale, 1)) <= 2 * PIXELS)
    bar, paired = height.max(), np.array([bool(match) for match in others])
    lower = paired & np.array([kind == "B" for kind in re.findall(r"\d([FBIW])", " ".join(ops))])
    levels = sorted(set(y - lower * bar / 2))
    assert [levels.index(each) for each in y - lower * bar / 2] == expected.device.tolist()
    assert len({round(below - above, 6) for above, below in pairwise(levels)}) <= 1
    assert set(height / bar) <= {0.5, 1.0}
    assert (height[paired] == bar / 2).all()
    assert expected.schedule.pairs.size == sum(paired) / 2
    colours_are_right([fill for *_, fill in panel["bars"]], expected)


def causes_in(step: Timeline) -> list[str]:
    """Return for each operation of a measured step the last to end of its input from another device and the operation before it.

    Between any two operations of a measured step there is a little time, so a gap alone does not tell that a device waited.
    """
    ends = dict(zip(step.ops, zip(step.end, step.device.tolist(), strict=True), strict=True))
    causes, before = [], dict.fromkeys(range(step.schedule.devices), None)
    for op, device in zip(step.ops, step.device.tolist(), strict=True):
        last = before[device]
        late = [need for need in step.schedule.needs(op) if ends[need][1] != device and (last is None or ends[need][0] > ends[last][0])]
        causes.append(str(late[0] if late else last or "nothing"))
        before[device] = op
    return causes


def copies_of(expected: Timeline) -> list[str | None]:
    """Return the words for the copy of the weights that each operation uses; None if there is only one copy."""
    if REGISTRY[expected.schedule.name].copies == 1:
        return [None] * len(expected.ops)
    enters = {op.microbatch: device for op, device in zip(expected.ops, expected.device.tolist(), strict=True) if op.stage == 0}
    return ["second" if enters[op.microbatch] else "first" for op in expected.ops]


def partners_of(expected: Timeline) -> list[str | None]:
    """Return the partner of each operation in an overlapped pair, read from the schedule's text."""
    pairs = re.findall(r"\((\w+);(\w+)\)", str(expected.schedule))
    other = dict(pairs) | {second: first for first, second in pairs}
    return [other.get(str(op)) for op in expected.ops]


def colours_are_right(fills: list[str], expected: Timeline) -> None:
    """Raise AssertionError if colours do not tell operations apart as they should.

    Two operations must have the same colour if they have the same kind, copy of the weights and chunk, and different colours otherwise.
    """
    chunks = [op.stage // expected.schedule.devices for op in expected.ops]
    groups = list(zip([op.kind for op in expected.ops], copies_of(expected), chunks, strict=True))
    assert len(set(zip(groups, fills, strict=True))) == len(set(groups)) == len(set(fills))
