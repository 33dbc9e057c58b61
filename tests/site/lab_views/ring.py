"""Check that a ring stepper shows the right rings.

For every step it must show which ranks are in each chunk, in the ring and in the matrix, the messages, the sentences and the tables.
Between two steps, each chunk that is sent must be on the link from its sender to its receiver.
"""

import math
import re
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from naive_ring import naive_ring
from playwright.sync_api import Locator

from lab_views.kind import Kind, rows_of, setting_of, with_no_data, words_of

FAULTS = {"ring": "", "correct": "", "mine": "", "published": "off-by-one"}  # the fault of each ring, by its name in the labs
PLACES = re.compile(r"chunk (\d+) on rank (\d+)")
# `chunks(picture, outline)`: for each chunk in a picture its place, the colours and the sign in it, and its outline
CHUNKS = """
  const starts = (path) => [...path.getAttribute("d").matchAll(/M(-?[\\d.]+) (-?[\\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]);
  const within = (box, room = 0) => ([x, y]) =>
    x >= box.x - 0.5 && x <= box.x + box.width + room && y >= box.y - 0.5 && y <= box.y + box.height + 0.5;
  const chunks = (picture, outline, room) => [...picture.querySelectorAll(outline)].map((rect) => {
    const box = Object.fromEntries(["x", "y", "width", "height"].map((name) => [name, rect[name].baseVal.value]));
    const having = (paths) => [...picture.querySelectorAll(paths)].filter((path) => starts(path).some(within(box, room)));
    const colours = having(".holdings .in").map((path) => Number(/of(\\d)/.exec(path.getAttribute("class"))[1]));
    const marks = having(".sign").map((path) => path.classList[1]);
    const place = [Number(rect.dataset.rank), Number(rect.dataset.chunk)];
    return { place, box, colours, mark: marks.join(), lined: rect.classList.contains(marks[0]), fresh: rect.classList.contains("fresh") };
  });
"""
# for each ring: every box of the matrix with its digits and its number; what does not fit in it; the heads of arrows, and the words
SHOWN = f"""(root) => [...root.querySelectorAll(".rings section")].map((section) => {{
  {CHUNKS}
  const inside = (a, b) => [[a.x, a.y], [a.x + a.width - 1, a.y + a.height - 1]].every(within(b));
  const [picture, size] = [section.querySelector(".matrix svg"), {{ width: 9, height: 9 }}];
  const texts = [...picture.querySelectorAll(".digit, .value")].map((text) => [text, text.getBBox()]);
  const boxes = chunks(picture, ".box").map((each) => {{
    const here = texts.filter(([text, box]) => text.textContent && within(each.box)([box.x + box.width / 2, box.y + box.height / 2]));
    const [value, digits] = ["value", "digit"].map((name) => here.find(([text]) => text.classList.contains(name)));
    const cells = [...picture.querySelectorAll(".in, .slot")].flatMap(starts).filter(within(each.box));
    const clear = !each.mark || value[1].x + value[1].width <= each.box.x + each.box.width - 5 - 8 + 1.5;
    const fits = clear && here.every(([, box]) => inside(box, each.box)) && cells.every(([x, y]) => inside({{ x, y, ...size }}, each.box));
    return {{ ...each, fits, value: Number(value[0].textContent), digits: [...(digits?.[0].textContent ?? "")].map(Number) }};
  }});
  const heads = [...picture.querySelectorAll(".head")].map((head) => [head.getBBox().x + head.getBBox().width, head.getBBox().y + 4]);
  const told = [...section.querySelectorAll(".told")].map((each) => each.textContent);
  return {{ boxes, heads, told, name: section.ariaLabel }};
}})"""
# for each ring: its nodes, its rows, the links with their ends, and the chunks that travel, with their distance to each link
DRAWN = f"""(root) => [...root.querySelectorAll(".rings section")].map((section) => {{
  {CHUNKS}
  const picture = section.querySelector(".circle");
  const all = (selector, inside = picture) => [...inside.querySelectorAll(selector)];
  const nodes = all(".frame").map((frame) => frame.getBBox()).map(({{ x, y, width, height }}) => [x + width / 2, y + height / 2]);
  const points = (way, count) => Array.from({{ length: count + 1 }}, (_, place) => {{
    const {{ x, y }} = way.getPointAtLength((way.getTotalLength() * place) / count);
    return [x, y];
  }});
  const ways = all(".road").map((road) => ({{ used: road.classList.contains("used"), points: points(road.querySelector(".way"), 80) }}));
  const movers = all(".mover").map((mover) => {{
    const at = [...mover.getAttribute("transform").matchAll(/-?[\\d.]+/g)].map(Number);
    const far = ways.map((way) => Math.min(...way.points.map(([x, y]) => Math.hypot(x - at[0], y - at[1]))));
    const colours = all(".in", mover).map((cell) => Number(/of(\\d)/.exec(cell.getAttribute("class"))[1]));
    return {{ at, far, colours, chunk: Number(mover.textContent) }};
  }});
  const links = ways.map(({{ used, points }}) => ({{ used, from: points[0], to: points.at(-1) }}));
  return {{ nodes, links, movers, rows: chunks(picture, ".row", 9) }};
}})"""


class State(NamedTuple):
    """What a ring holds after a step, and the messages of the step.

    For each (rank, chunk, part), it says how often each rank's number is in the sum.
    """

    phase: str
    parts: Any
    messages: list[tuple[int, int, int]]  # sender, receiver, chunk
    whole: Any
    lost: Any
    error: float

    @property
    def values(self) -> Any:
        return self.parts @ 2.0 ** np.arange(len(self.parts))


@cache
def states(name: str, ranks: int) -> list[State]:
    """Return what a ring holds after every step, computed message by message.

    Each rank's number has its own digit, so the digits of a sum show which ranks are in it.
    """
    start = np.repeat(8.0 ** np.arange(ranks)[:, None], ranks, axis=1)
    run = naive_ring(start, average=False, record=True, fault=FAULTS[name])
    phases, sent = [("start", [])], [(phase, chunks) for phase, _, chunks, _ in run.hops]
    found, ever = [], np.zeros((ranks, ranks), dtype=bool)
    for held, (phase, chunks) in zip([start, *run.held], [*phases, *sent], strict=True):
        parts = held[:, :, None].astype(int) // 8 ** np.arange(ranks) % 8
        whole = (parts == 1).all(axis=2)
        messages = [(rank, (rank + 1) % ranks, chunk) for rank, chunk in enumerate(chunks)]
        powers = 2.0 ** np.arange(ranks)
        error = float(np.abs(parts @ powers / ranks - powers.mean()).max())
        found.append(State(phase, parts, messages, whole, ever & ~whole, error))
        ever |= whole
    return found


def is_right(view: Locator, names: tuple[str, ...]) -> None:
    setting = setting_of(view)
    ranks, time = int(setting["Ranks, D"]), view.evaluate("(root) => Number(root.querySelector('.player input').value)")
    step, hop = math.floor(time), math.ceil(time)
    runs = [states(name, ranks) for name in names]
    shown = view.evaluate(SHOWN)
    assert [ring["name"] for ring in shown] == list(names)
    label = f"{step} of {2 * ranks - 2}, {runs[0][step].phase}"
    assert setting["Step"] == (label if step == hop else f"{step} of {2 * ranks - 2}, step {hop} runs")
    for ring, circle, run in zip(shown, view.evaluate(DRAWN), runs, strict=True):
        ring_is_right(ring, run, step)
        circle_is_right(circle, run, time)
    rows = rows_of(view, ".figures tbody tr")
    assert [row[0] for row in rows] == [f"{place}, {state.phase}" for place, state in enumerate(runs[0])]
    for place, row in enumerate(rows):
        assert row[1:] == [f"{run[place].whole.sum()} of {ranks**2}" for run in runs] + [f"{run[place].error:.6g}" for run in runs]
    assert words_of(view, "[aria-current=step]").startswith(f"{step}, ")
    spoken = words_of(view, "[aria-live=polite].unseen")
    sums = [f"{run[step].whole.sum()} whole sums, difference to the mean {run[step].error:.6g}." for run in runs]
    assert spoken == f"Step {label}. {' '.join(map(': '.join, zip(names, sums, strict=True)))}"
    tables = view.evaluate("(root) => [...root.querySelectorAll('details table')].map((each) => [...each.tBodies[0].rows].map((row) => "
                           "[...row.cells].slice(1).map((cell) => cell.textContent)))")  # fmt: skip
    for table, run in zip(tables, runs, strict=True):
        assert [[cell.split(":")[0] for cell in row] for row in table] == [[f"{value:g}" for value in row] for row in run[step].values.T]
        digits = [[list(map(int, re.findall(r"\d+", cell.split(":")[1]))) for cell in row] for row in table]
        assert digits == [[np.flatnonzero(parts).tolist() for parts in row] for row in run[step].parts.swapaxes(0, 1)]


def chunk_is_right(shown: Any, state: State, received: set[tuple[int, int]]) -> None:
    """Raise AssertionError unless a chunk in the matrix or in the ring has the colours, the sign and the outline of a state."""
    place = tuple(shown["place"])
    assert shown["colours"] == np.flatnonzero(state.parts[place]).tolist()
    assert shown["mark"] == ("whole" if state.whole[place] else "lost" if state.lost[place] else "")
    assert shown["lined"] == bool(shown["mark"])
    assert shown["fresh"] == (place in received)


def ring_is_right(ring: Any, run: list[State], step: int) -> None:
    """Raise AssertionError unless the boxes, the arrows and the sentences of one ring belong to the given step."""
    state, ranks = run[step], len(run[step].parts)
    received = {(receiver, chunk) for _, receiver, chunk in state.messages}
    assert sorted(tuple(box["place"]) for box in ring["boxes"]) == [(rank, chunk) for rank in range(ranks) for chunk in range(ranks)]
    columns, rows = (sorted({box["box"][axis] for box in ring["boxes"]}) for axis in "xy")
    for box in ring["boxes"]:
        place = tuple(box["place"])
        assert (columns.index(box["box"]["x"]), rows.index(box["box"]["y"])) == place
        chunk_is_right(box, state, received)
        assert box["digits"] == box["colours"]
        assert box["value"] == state.values[place]
        assert box["fits"], (step, box)
    pitch = rows[1] - rows[0]
    ends = [(min(range(ranks), key=lambda rank: abs(columns[rank] - x)), int((y - rows[0]) // pitch)) for x, y in ring["heads"]]
    assert received <= set(ends)  # an arrow ends at each box that receives; the arrow of the last rank has a head at its start, too
    assert len(ends) == len(received) + bool(received)
    sent, told = ring["told"]
    phrases = [f"rank {sender} sends chunk {chunk} to rank {receiver}" for sender, receiver, chunk in state.messages]
    assert sent.lower() == (f"{', '.join(phrases)}." if phrases else "nothing is sent yet.")
    before = run[step - 1] if step else state
    for words, now, earlier in (("Whole from now on", state.whole, before.whole), ("overwritten", state.lost, before.lost)):
        sentence = next((each for each in told.split(". ") if words in each), "")
        assert sorted([int(rank), int(chunk)] for chunk, rank in PLACES.findall(sentence)) == np.argwhere(now & ~earlier).tolist()


def circle_is_right(circle: Any, run: list[State], time: float) -> None:
    """Raise AssertionError unless the nodes of a ring belong to the step that is over, and the chunks that travel to the one that runs."""
    step, hop = math.floor(time), math.ceil(time)
    state, ranks, nodes = run[step], len(run[step].parts), np.array(circle["nodes"])
    centre = nodes.mean(axis=0)
    turns = [math.atan2(x, -y) / math.tau * ranks % ranks for x, y in nodes - centre]  # clockwise from the top
    assert np.allclose((np.array(turns) - np.arange(ranks) + 0.5) % ranks, 0.5, atol=0.02)
    assert np.ptp(np.hypot(*(nodes - centre).T)) < 1
    assert sorted(tuple(row["place"]) for row in circle["rows"]) == [(rank, chunk) for rank in range(ranks) for chunk in range(ranks)]
    received = {(receiver, chunk) for _, receiver, chunk in state.messages}
    heights: dict[int, list[float]] = {}
    for row in sorted(circle["rows"], key=lambda row: tuple(row["place"])):
        rank, middle = row["place"][0], [row["box"]["x"] + row["box"]["width"] / 2, row["box"]["y"] + row["box"]["height"] / 2]
        assert np.hypot(*(nodes - middle).T).argmin() == rank
        heights.setdefault(rank, []).append(middle[1])
        chunk_is_right(row, state, received)
    assert all(each == sorted(each) for each in heights.values())

    def ends(link: Any) -> tuple[int, ...]:
        return tuple(int(np.hypot(*(nodes - link[end]).T).argmin()) for end in ("from", "to"))

    assert sorted(ends(link) for link in circle["links"]) == sorted((rank, (rank + 1) % ranks) for rank in range(ranks))
    assert sorted(ends(link) for link in circle["links"] if link["used"]) == sorted(message[:2] for message in run[hop].messages)
    sent = []
    for mover in circle["movers"]:
        nearest = circle["links"][int(np.argmin(mover["far"]))]
        sender, receiver = ends(nearest)
        sent.append((sender, receiver, mover["chunk"]))
        assert min(mover["far"]) < 1, "a chunk travels beside its link"
        assert mover["colours"] == np.flatnonzero(run[hop - 1].parts[sender, mover["chunk"]]).tolist()
        before, after = (math.dist(mover["at"], nodes[rank]) for rank in (sender, receiver))
        passed = time - hop + 1
        if abs(passed - 0.5) < 0.01:
            assert abs(before - after) < 1, "after half of a step, a chunk is in the middle of its link"
        else:
            assert (before > after) == (passed > 0.5)
    assert sorted(sent) == sorted(run[hop].messages)


def without_runs(state: Any) -> None:
    del state["data"]["runs"]


def with_a_rank_too_few(state: Any) -> None:
    state["data"]["runs"]["4"]["rings"][0][0]["marks"].pop()


def with_a_step_that_is_not(state: Any) -> None:
    state["step"] = 99


def each_state(state: Any) -> Any:
    return [each for run in state["data"]["runs"].values() for ring in run["rings"] for each in ring]


def with_a_rank_in_no_sum(state: Any) -> None:
    for each in each_state(state):
        each["parts"][1][1][1] = 0


def with_another_sum(state: Any) -> None:
    for each in each_state(state):
        each["values"][0][1] += 1


def with_marks_too_early(state: Any) -> None:
    for each in each_state(state):
        each["marks"][0][0] = "whole"


def with_the_mean_too_near(state: Any) -> None:
    for each in each_state(state):
        each["error"] /= 2


def with_messages_the_other_way(state: Any) -> None:
    for each in each_state(state):
        each["messages"] = [[receiver, sender, chunk] for sender, receiver, chunk in each["messages"]]


KIND = Kind(
    "ring",
    "RingStepper",
    "labs/lab04_ring.html",
    is_right,
    given=(("ring",), ("correct", "published"), ("correct", "mine")),
    begin={"Step": "2"},
    damages=(without_runs, with_a_rank_too_few, with_no_data, with_a_step_that_is_not),
    faults=(with_a_rank_in_no_sum, with_another_sum, with_marks_too_early, with_the_mean_too_near, with_messages_the_other_way),
    python=("step", 5),
)
