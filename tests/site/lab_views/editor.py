"""Check that a schedule editor judges its text as the library does: the chips, the faults, the goals, the figures and every bar."""

import re
from collections.abc import Collection
from typing import Any

from explorers import SHOWN, bars_are_right
from playwright.sync_api import Locator

from hybridlab import Schedule, Timeline, simulate
from hybridlab.course.puzzles import PUZZLES, Puzzle
from lab_views.kind import CONTROLS, DRAWN, ENTER, Kind, with_no_data

OPERATION = re.compile(r"(\d+)([FBIW])(\d+)")
LABEL = re.compile(r"^device \d+:? ?")
WRITTEN = """(root) => {
  const texts = (from, selector) => [...from.querySelectorAll(selector)].map((each) => each.textContent);
  const chips = [...root.querySelectorAll(".order")].map((row) => [...row.children].map((chip) => [chip.textContent, chip.classList[1]]));
  const goals = [...root.querySelectorAll(".goals li")].map((goal) => [goal.classList.contains("reached"), texts(goal, ".unseen")[0],
    goal.lastChild.textContent]);
  const slider = root.querySelector(".player [type=range]");
  const player = slider.checkVisibility() ? [slider.getAttribute("aria-valuetext"), Number(slider.value), Number(slider.max)] : null;
  return { text: root.querySelector("textarea").value, verdict: texts(root, ".verdict")[0], chips, goals, player,
    faults: [...root.querySelectorAll(".faults li")].map((fault) => fault.firstChild.textContent),
    waits: texts(root, ".moment .waits"), dots: texts(root, ".dot").length };
}"""
HERE = """(root) => {
  const here = document.activeElement;
  return root.contains(here) ? [here.getAttribute("role") ?? here.localName, here.getAttribute("aria-label") ?? here.textContent] : null;
}"""


def is_right(view: Locator, name: str) -> None:
    """Raise AssertionError unless the view shows what the library says about its text for the puzzle of this name."""
    puzzle = PUZZLES[name]
    view.evaluate(DRAWN)
    shown, drawn = view.evaluate(WRITTEN), view.evaluate(SHOWN)
    judged = puzzle.judge(shown["text"])
    lines = [LABEL.sub("", line).split() for line in shown["text"].splitlines() if line.strip()]
    ran = running(puzzle, lines)
    assert [[word for word, _ in row] for row in shown["chips"]] == lines
    assert all((state == "ran") == (word in ran) for row in shown["chips"] for word, state in row if state != "wrong"), shown
    goals_are_right(shown["goals"], puzzle, judged.reached)
    figures_are_right(drawn["rows"], puzzle, ran)
    if judged.timeline is None:
        first = shown["faults"][0]
        assert judged.sentence.startswith("schedule ") or first == f"{judged.sentence[0].upper()}{judged.sentence[1:]}."
        assert shown["verdict"].startswith("No schedule yet: ")
        bars = [words.split(":")[0] for panel in drawn["panels"] for words, *_ in panel["bars"]]
        assert sorted(bars) == sorted(ran), shown["text"]
        return
    assert (shown["verdict"], shown["faults"]) == ("This order is complete and can run.", [])
    bars_are_right(drawn["panels"][0], simulate(Schedule.parse(shown["text"], name="zb-h1"), puzzle.costs))
    moment_is_right(shown, judged.timeline, float(puzzle.costs.p2p.item()))


def running(puzzle: Puzzle, lines: list[list[str]]) -> dict[str, tuple[int, float, float]]:
    """Return the device, the start and the end of each operation that can run: line by line, until every device waits."""
    seen: set[str] = set()
    orders: list[list[re.Match[str]]] = []
    for line in lines:
        orders.append([])
        for match in filter(None, map(OPERATION.fullmatch, line)):
            if fits(match, puzzle) and match[0] not in seen:
                orders[-1].append(match)
                seen.add(match[0])
    free = [0.0] * puzzle.devices
    ran: dict[str, tuple[int, float, float]] = {}
    goes_on = True
    while goes_on:
        goes_on = False
        for device, order in enumerate(orders):
            while order and (inputs := inputs_of(order[0], puzzle.devices, ran)) is not None:
                latency = [0 if ran[each][0] == device else float(puzzle.costs.p2p.item()) for each in inputs]
                start = max([free[device], *(ran[each][2] + wait for each, wait in zip(inputs, latency, strict=True))])
                free[device] = start + durations(puzzle, device)[order[0][2]]
                ran[order.pop(0)[0]] = device, start, free[device]
                goes_on = True
    return ran


def fits(match: re.Match[str], puzzle: Puzzle) -> bool:
    return int(match[1]) < puzzle.devices and int(match[3]) < puzzle.microbatches


def durations(puzzle: Puzzle, device: int) -> dict[str, float]:
    """Return the time of each kind of operation on a device."""
    each = puzzle.data()["costs"]
    forward, backward, share = (each[name][device] for name in ("forward", "backward", "weight_share"))
    return {"F": forward, "B": backward, "I": backward * (1 - share), "W": backward * share}


def inputs_of(match: re.Match[str], devices: int, ran: Collection[str]) -> list[str] | None:
    """Return the inputs of an operation, or None if one of them has not run."""
    stage, kind, microbatch = int(match[1]), match[2], match[3]
    wanted = {"F": [f"{stage - 1}F{microbatch}"] * (stage > 0), "W": [f"{stage}I{microbatch}"]}.get(kind, [f"{stage}F{microbatch}"])
    if kind in "BI" and stage < devices - 1:
        wanted.append(next((text for each in "BI" if (text := f"{stage + 1}{each}{microbatch}") in ran), "none"))
    return wanted if set(wanted) <= set(ran) else None


def goals_are_right(goals: Any, puzzle: Puzzle, reached: tuple[str, ...]) -> None:
    for (marked, said, words), goal in zip(goals, puzzle.goals, strict=True):
        assert marked == (goal.name in reached)
        assert said == ("reached: " if marked else "not reached: ")
        assert words in (goal.words, f"{goal.words}: {goal.makespan:g} ms" if goal.makespan else "")


def figures_are_right(rows: Any, puzzle: Puzzle, ran: dict[str, tuple[int, float, float]]) -> None:
    """Raise AssertionError unless the table has the figures of the operations that run."""
    if not ran:
        assert rows == []
        return
    makespan = max(end for *_, end in ran.values())
    busy = sum(end - start for _, start, end in ran.values())
    held, peaks = [0] * puzzle.devices, [0] * puzzle.devices
    for text, (device, *_) in ran.items():
        held[device] += {"F": 1, "I": 0}.get(text.strip("0123456789"), -1)
        peaks[device] = max(peaks[device], held[device])
    assert [cells[1] for cells in rows[::2]] == [f"{makespan:g} ms", f"{', '.join(map(str, peaks))} (room for {puzzle.memory})"]
    assert abs(float(rows[1][1]) - 1 + busy / (puzzle.devices * makespan)) <= 5.001e-4


def moment_is_right(shown: Any, timeline: Timeline, latency: float) -> None:
    """Raise AssertionError unless the time cursor is at the end, or exactly the devices that compute nothing say what they wait for."""
    told, time, end = shown["player"]
    assert told == f"{time:g} ms"
    assert end == timeline.makespan
    if time == end:
        return
    now = (timeline.start <= time) & (time < timeline.end)
    computes = [bool((now & (timeline.device == device)).any()) for device in range(timeline.schedule.devices)]
    assert [words == "" for words in shown["waits"]] == computes
    sent = timeline.end[timeline.schedule.source[timeline.schedule.crosses]]
    assert shown["dots"] == ((sent <= time) & (time < sent + latency)).sum()


def walk(view: Locator, kind: Kind, place: int) -> None:
    """Go through an editor with the Tab key, and write, choose, move, save and play; the view must be right after the last key of each."""
    press = view.page.keyboard.press

    def pressed(*keys: str) -> None:
        for key in keys:
            press(key)
        kind.is_right(view, place)

    names = []
    view.evaluate(ENTER)
    press("Tab")
    while here := view.evaluate(HERE):
        role, name = here
        names.append(name)
        if role == "textarea":
            press("Control+End")
            view.page.keyboard.insert_text(" 0F0")
            pressed("Control+z", "Control+Shift+z", "Control+z")
        elif role == "select" and name != "Speed":
            press("Home")
            for key in ["ArrowDown"] * 3:
                press(key)
                press("Tab")
                pressed("Enter")
                press("Shift+Tab")
            press("Home")
        elif role == "option":
            pressed("Alt+ArrowRight", "Alt+ArrowLeft", "ArrowDown", "Alt+End", "Alt+Home")
        elif role == "input":
            pressed("Home", *["ArrowRight"] * 5, "End", "ArrowLeft")
        elif role == "button" and name not in ("Play", "Go there"):
            pressed("Enter")
        elif role == "summary":
            pressed("Enter", "Enter")  # a fold closes and opens
        elif role == "img":
            pressed("ArrowRight", "ArrowDown", "End")
        press("Tab")
    saved = {"Save text", "Save SVG", "Save CSV", "Save Perfetto trace"}
    assert saved | {"Use this schedule", "Undo", "Play", "Speed"} <= set(names), f"Tab reaches only {names}"
    assert len(names) >= view.locator(CONTROLS).and_(view.locator(":enabled, summary, [tabindex]")).count()


def with_shorter_forwards(state: Any) -> None:
    state["data"]["costs"]["forward"] = [time - 1 for time in state["data"]["costs"]["forward"]]


def with_more_memory(state: Any) -> None:
    state["data"]["memory"] += 1


def with_goals_in_another_order(state: Any) -> None:
    state["data"]["goals"].reverse()


def with_a_wrong_goal(state: Any) -> None:
    state["data"]["goals"][-1]["makespan"] += 1


def without_costs(state: Any) -> None:
    del state["data"]["costs"]


def without_goals(state: Any) -> None:
    state["data"]["goals"] = []


def with_a_number_for_a_text(state: Any) -> None:
    state["text"] = 3


KIND = Kind(
    "editor",
    "ScheduleEditor",
    "labs/lab17_design_your_own.html",
    is_right,
    given=("two-devices", "little-memory"),
    damages=(without_costs, without_goals, with_a_number_for_a_text, with_no_data),
    faults=(with_shorter_forwards, with_more_memory, with_goals_in_another_order, with_a_wrong_goal),
    python=("text", "device 0: 0F0 0F1 0B0 0F2 0B1 0B2\ndevice 1: 1F0 1F1 1B0"),
    taken="Use this schedule",
    walk=walk,
)
