"""Check that a ring stepper shows the right rings.

For every step it must show which ranks are in each chunk, the messages, the sentences and the tables.
"""

import re
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from naive_ring import naive_ring
from playwright.sync_api import Locator

from lab_views.kind import Kind, rows_of, setting_of, with_no_data, words_of

FAULTS = {"ring": "", "correct": "", "published": "off-by-one"}  # the fault of each ring, by its name in the labs
PLACES = re.compile(r"chunk (\d+) on rank (\d+)")
# for each ring: every box with the ranks that it names, its number and its sign; and the texts that leave their box
SHOWN = """(root) => [...root.querySelectorAll(".rings section")].map((section) => {
  const within = (start, length, from, room) => start >= from - 0.5 && start + length <= from + room + 0.5;
  const inside = (a, b) => within(a.x, a.width, b.x, b.width) && within(a.y, a.height, b.y, b.height);
  const apart = (a, b) => a.x + a.width <= b.x + 1.5 || b.x + b.width <= a.x + 1.5;
  const boxes = [...section.querySelectorAll("g")].map((box) => {
    const [frame, value, sign] = [box.querySelector(".box"), box.querySelector(".value"), box.querySelector(".sign")];
    const parts = [value, ...box.querySelectorAll(".slot")];
    const clear = !sign || apart(value.getBBox(), sign.getBBox());
    return {
      place: [Number(box.dataset.rank), Number(box.dataset.chunk)], value: Number(value.textContent),
      ranks: [...box.querySelectorAll(".digit")].map((digit) => Number(digit.textContent)),
      mark: sign ? sign.classList[1] : "", fresh: frame.classList.contains("fresh"),
      at: [frame.getBBox().x, frame.getBBox().y], fits: clear && parts.every((part) => inside(part.getBBox(), frame.getBBox())),
    };
  });
  const heads = [...section.querySelectorAll(".head")].map((head) => [head.getBBox().x + head.getBBox().width, head.getBBox().y + 4]);
  return { boxes, heads, told: [...section.querySelectorAll(".told")].map((each) => each.textContent), name: section.ariaLabel };
})"""


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
    ranks, step = int(setting["Ranks, D"]), int(setting["Step"].split()[0])
    runs = [states(name, ranks) for name in names]
    shown = view.evaluate(SHOWN)
    assert [ring["name"] for ring in shown] == list(names)
    assert setting["Step"] == f"{step} of {2 * ranks - 2}, {runs[0][step].phase}"
    for ring, run in zip(shown, runs, strict=True):
        ring_is_right(ring, run, step)
    rows = rows_of(view, ".figures tbody tr")
    assert [row[0] for row in rows] == [f"{place}, {state.phase}" for place, state in enumerate(runs[0])]
    for place, row in enumerate(rows):
        assert row[1:] == [f"{run[place].whole.sum()} of {ranks**2}" for run in runs] + [f"{run[place].error:.6g}" for run in runs]
    assert words_of(view, "[aria-current=step]").startswith(f"{step}, ")
    spoken = words_of(view, "[aria-live=polite].unseen")
    sums = [f"{run[step].whole.sum()} whole sums, difference to the mean {run[step].error:.6g}." for run in runs]
    assert spoken == f"Step {setting['Step']}. {' '.join(map(': '.join, zip(names, sums, strict=True)))}"
    tables = view.evaluate("(root) => [...root.querySelectorAll('details table')].map((each) => [...each.tBodies[0].rows].map((row) => "
                           "[...row.cells].slice(1).map((cell) => cell.textContent)))")  # fmt: skip
    for table, run in zip(tables, runs, strict=True):
        assert [[cell.split(":")[0] for cell in row] for row in table] == [[f"{value:g}" for value in row] for row in run[step].values.T]
        digits = [[list(map(int, re.findall(r"\d+", cell.split(":")[1]))) for cell in row] for row in table]
        assert digits == [[np.flatnonzero(parts).tolist() for parts in row] for row in run[step].parts.swapaxes(0, 1)]


def ring_is_right(ring: Any, run: list[State], step: int) -> None:
    """Raise AssertionError unless the boxes, the arrows and the sentences of one ring belong to the given step."""
    state, ranks = run[step], len(run[step].parts)
    received = {(receiver, chunk) for _, receiver, chunk in state.messages}
    assert sorted(tuple(box["place"]) for box in ring["boxes"]) == [(rank, chunk) for rank in range(ranks) for chunk in range(ranks)]
    columns, rows = (sorted({box["at"][axis] for box in ring["boxes"]}) for axis in (0, 1))
    for box in ring["boxes"]:
        place = tuple(box["place"])
        assert (columns.index(box["at"][0]), rows.index(box["at"][1])) == place
        assert box["ranks"] == np.flatnonzero(state.parts[place]).tolist()
        assert box["value"] == state.values[place]
        assert box["mark"] == ("whole" if state.whole[place] else "lost" if state.lost[place] else "")
        assert box["fresh"] == (place in received)
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


KIND = Kind(
    "ring",
    "RingStepper",
    "labs/lab04_ring.html",
    is_right,
    given=(("ring",), ("correct", "published")),
    begin={"Step": "2"},
    damages=(without_runs, with_a_rank_too_few, with_no_data, with_a_step_that_is_not),
    faults=(with_a_rank_in_no_sum, with_another_sum, with_marks_too_early, with_the_mean_too_near),
    python=("step", 5),
)
