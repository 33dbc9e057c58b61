"""Check that a step explorer shows the right step: every bar, the table of figures, and the sentence about one rank at one time."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from playwright.sync_api import Locator

from hybridlab import REGISTRY, Costs, build, hybrid_step
from hybridlab.step import HybridStep
from lab_views.kind import Kind, rows_of, setting_of, with_no_data

PIXELS = 0.02  # the drawing rounds to hundredths of a pixel
NARROWEST = {"send": 2.5, "receive": 2.5}  # in px; so an operation that takes no time is still visible
DRAWN = {"reduce-scatter": "scatters", "all-gather": "gathers", "send": "send", "receive": "receive"}
WORDS = {"F": "forward", "B": "backward", "I": "input gradient", "W": "weight gradient"}
NAMES = {family.title: name for name, family in REGISTRY.items()}
SHOWN = """(root) => {
  const numbers = (element, ...names) => names.map((name) => Number(element.getAttribute(name)));
  const outlines = (path) => [...path.getAttribute("d").matchAll(/M([^ ]+) ([^h]+)h([^v]+)v([^h]+)h/g)];
  const boxes = (selector) => [...root.querySelectorAll(`.plot path${selector}`)]
    .flatMap((path) => outlines(path).map(([, ...box]) => box.map(Number))); // x, y, width, height
  return {
    ops: boxes(".op"), scatters: boxes(".hop:not(.gathers)"), gathers: boxes(".hop.gathers"),
    send: boxes(".send"), receive: boxes(".receive"), rows: boxes(".paper"),
    end: numbers(root.querySelector(".plot line.end"), "x1")[0], told: root.querySelector(".told").textContent,
    here: [...root.querySelectorAll(".names .rank.here")].map((each) => Number(each.textContent.split(" ")[1])),
  };
}"""


class Given(NamedTuple):
    """What a lab gives to a step explorer: the times of a forward and a backward, and the values that the controls leave out."""

    forward: float
    backward: float
    overlaps: tuple[bool, ...]
    devices: int = 0
    ring: float = 0.0
    schedule: str = ""


@cache
def step_of(given: Given, schedule: str, sizes: tuple[int, int, int], ring: float, overlap: bool) -> HybridStep:
    devices, replicas, microbatches = sizes
    costs = Costs(forward=given.forward, backward=given.backward)
    return hybrid_step(build(schedule, devices, microbatches), costs, replicas, ring_step=ring, overlap=overlap)


def is_right(view: Locator, given: Given) -> None:
    setting = setting_of(view)
    sizes = int(setting.get("Devices, K", given.devices)), int(setting["Replicas, D"]), int(setting["Microbatches, M"])
    schedule = NAMES[setting["Schedule"]] if "Schedule" in setting else given.schedule
    make = partial(step_of, given, schedule, sizes, float(setting.get("Ring step, ms", given.ring)))
    overlap = setting["Rings run"] != "after computing" if len(given.overlaps) > 1 else given.overlaps[0]
    step = make(overlap)
    shown = view.evaluate(SHOWN)
    drawn_is_right(shown, step, rings_only=setting.get("Picture shows") == "the rings")
    figures_are_right(view, [make(each) for each in given.overlaps])
    rank, time = told_is_right(shown, step)
    assert rank == int(setting["Rank"].split(",")[0])
    assert time == float(setting["Moment, ms"].removesuffix(" ms"))


@cache
def rows_in(step: HybridStep) -> list[dict[str, Any]]:
    return step.timeline.to_rows()


def drawn_is_right(shown: Any, step: HybridStep, rings_only: bool = False) -> None:
    """Raise AssertionError unless every bar stands where the library says; with ``rings_only``, from the first hop on."""
    rows = rows_in(step)
    begin = min(row["start"] for row in rows if row["op"].startswith("reduce")) if rings_only else 0
    scale = shown["end"] / (step.makespan - begin)
    tops = [top for _, top, _, _ in shown["rows"]]
    assert tops == sorted(tops)
    assert len(tops) == step.mesh.size
    heights = {height for _, _, _, height in shown["rows"]}
    assert len(heights) == 1
    (bar,) = heights
    sharing = Counter((row["device"], row["start"], row["end"]) for row in rows if row["op"].split()[0] not in DRAWN)
    wanted: dict[str, list[tuple[Any, ...]]] = {name: [] for name in ("ops", *DRAWN.values())}
    for row in rows:
        name = DRAWN.get(row["op"].split()[0], "ops")
        left, right = ((row[edge] - begin) * scale for edge in ("start", "end"))
        if (row["op"] != "optimiser" or right > left) and (right >= 0 if left >= 0 else right > 0):
            across = row["device"], max(left, 0), max(right - max(left, 0), NARROWEST.get(name, 1))
            half = sharing[row["device"], row["start"], row["end"]] > 1  # in a pair, the forward is above and the backward below
            level = (bar / 2 * (half and "B" in row["op"]), bar / (1 + half)) if name == "ops" else ()
            wanted[name].append((*across, *level))
    for name, bars in wanted.items():
        places = [int(np.searchsorted(tops, top + 0.01)) - 1 for _, top, _, _ in shown[name]]
        found = [
            (place, x, width, *((top - tops[place], height) if name == "ops" else ()))
            for place, (x, top, width, height) in zip(places, shown[name], strict=True)
        ]
        if rings_only and name == "ops":
            continue  # an operation that ends when the first hop starts may be drawn or not
        assert len(found) == len(bars), f"{len(found)} {name} are drawn, not {len(bars)}"
        assert np.allclose(sorted(found), sorted(bars), atol=PIXELS + 1e-4 * shown["end"], rtol=0), name


def figures_are_right(view: Locator, steps: Sequence[HybridStep]) -> None:
    """Raise AssertionError unless the table has a column for each of these steps."""
    table = rows_of(view)
    for column, step in enumerate(steps, start=1):
        peaks = ", ".join(f"{peak:.6g}" for peak in step.peak_activations[: step.mesh.stages])
        times = [step.makespan, step.all_reduce_time, step.exposed_communication]
        share, efficiency = step.communication_share, step.efficiency
        figures = [*(f"{time:.6g}" for time in times), share, f"{step.single_device_time:.6g}", f"{step.speedup:.3f}", efficiency, peaks]
        for cell, figure in zip((row[column] for row in table), figures, strict=True):
            if isinstance(figure, str):
                assert cell == figure
            else:  # in per cent; Python and JavaScript round 81.25 differently
                assert abs(float(cell.removesuffix("\xa0%")) - 100 * figure) <= 0.0501


def told_is_right(shown: Any, step: HybridStep) -> tuple[int, float]:
    """Raise AssertionError unless the sentence says all that the rank does at that time, and nothing else.

    Both are returned.
    """
    told = shown["told"]
    head = re.match(r"Rank (\d+) \(\w+ (\d+), replica (\d+)\) at ([\d.e+-]+)", told)
    assert head
    rank, time = int(head[1]), float(head[4])
    assert step.mesh.coordinates(rank) == (int(head[2]), int(head[3]))
    grain = 1e-5 * step.makespan  # a number in the sentence has six digits
    active = [row for row in rows_in(step) if row["start"] <= time + grain < row["end"] - grain]
    schedule, phrases, goes = step.timeline.schedule, [], 0
    for row in (each for each in active if each["device"] == rank):
        what, *rest = row["op"].split()
        if what in ("reduce-scatter", "all-gather"):
            (into,) = (each for each in active if each["op"].split()[0] == what and each["peer"] == rank and each["stage"] == row["stage"])
            size = f" ({row['nbytes']:,} bytes)" if row["nbytes"] >= 0 else ""
            phrases.append(f"it sends chunk {row['chunk']} of the gradients{size} to rank {row['peer']} and receives ")
            phrases.append(f"chunk {into['chunk']} from rank {into['device']}")
            ring = f"{'both copies of ' if schedule.copies > 1 else ''}stage {row['stage']}"
            phrases.append(f"hop {row['step'] + 1} of {step.mesh.replicas * schedule.copies - 1} of the {what} on the ring of {ring}")
        elif what in ("send", "receive"):
            phrases.append(f"It {what}s the output of {rest[0]} {'to' if what == 'send' else 'from'} rank {row['peer']}")
        elif what == "optimiser":
            phrases.append("runs its optimiser")
        else:
            copy = f" of the {('first', 'second')[schedule.copy_of[row['microbatch']]]} copy of the weights" * (schedule.copies > 1)
            words = f"the {WORDS[row['kind']]} of microbatch {row['microbatch']} on stage {row['stage']}{copy}"
            phrases.append(f"runs {what}, {words}")
            goes += any(other["op"] == f"send {what}" and other["device"] == rank for other in rows_in(step))
    assert told.count(" goes to rank ") == goes, told
    for phrase in phrases:
        assert phrase in told, f"{phrase!r} is missing: {told}"
    for word, sign in (("runs ", "runs "), ("In hop", "hop "), ("It sends", "It sends"), ("It receives", "It receives")):
        assert told.count(word) == sum(phrase.startswith(sign) for phrase in phrases), told
    assert shown["here"] == [rank]
    return rank, time


def without_costs(state: Any) -> None:
    del state["data"]["costs"]


def with_words_for_times(state: Any) -> None:
    for entry in state["data"]["steps"].values():
        entry["makespan"] = "ninety"


def with_shorter_backwards(state: Any) -> None:
    state["data"]["costs"]["backward"] = [time - 1 for time in state["data"]["costs"]["backward"]]


def with_a_later_ring(state: Any) -> None:
    for entry in state["data"]["steps"].values():
        entry["rings"] = [[device, stage, start + 9, end + 9, sizes] for device, stage, start, end, sizes in entry["rings"]]


def with_one_more(name: str) -> Any:
    def planted(state: Any) -> None:
        for entry in state["data"]["steps"].values():
            entry[name] += 1

    planted.__name__ = f"with_one_more_{name}"
    return planted


KIND = Kind(
    "step",
    "StepExplorer",
    "labs/lab06_hybrid_step.html",
    is_right,
    given=(Given(50, 80, (False,), devices=2, ring=20, schedule="1f1b"), Given(10, 20, (False, True, True), devices=4)),
    damages=(without_costs, with_words_for_times, with_no_data),
    faults=(with_shorter_backwards, with_a_later_ring, *map(with_one_more, ("makespan", "speedup", "exposed"))),
    silent=("Picture shows",),
    python=("replicas", 4),
)
