"""Compare the step explorer's data with the numbers of the published report, a naive loop over events, and counting."""

import contextlib
import json
import re
from collections.abc import Iterable
from fractions import Fraction
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import node
import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import junk, refused_and_unchanged
from oracle import partners
from profiles import examples
from step_oracle import Step

from hybridlab import FP16, FP32, INT8, REGISTRY, HybridLabError, build
from hybridlab.collectives import Link
from hybridlab.palette import KIND_COLOURS, SPAN_COLOURS
from hybridlab.step import HybridStep
from hybridlab.widgets import StepExplorer, page_data
from hybridlab.widgets.step_explorer import AXES, step_key

Row = tuple[Any, ...]


def small(**changes: Any) -> StepExplorer:
    arguments: dict[str, Any] = {"replicas": (1, 2, 3), "microbatches": (2, 4), "ring_step": (0, 0.5), "unit": "ms"} | changes
    return StepExplorer(**arguments)


@cache
def common() -> StepExplorer:
    """Give one explorer for all tests that do not change it."""
    return small()


def report() -> StepExplorer:
    """Give the grid of the report: 2 stages, 50 and 80 ms, and 20 ms for each step of a ring."""
    return StepExplorer("1f1b", replicas=(1, 2), microbatches=(2, 4, 8, 16), forward=50, backward=80, ring_step=20, unit="ms")


def settings_of(explorer: StepExplorer) -> list[dict[str, Any]]:
    return [dict(zip(AXES, values, strict=True)) for values in product(*(explorer.data[name] for name in AXES))]


DRAWN = """
import { stepsOf } from "./step_explorer_data.js";
import { idleWords } from "./step_explorer_words.js";
const rowsOf = ({ rank, ops, sends, receives, hops, optimiser }) => [
  ...ops.map(({ text, start, end }) => [rank, text, -1, start, end]),
  ...sends.map(({ op, to, start, end }) => [rank, `send ${op.text}`, to, start, end]),
  ...receives.map(({ op, from, start, end }) => [rank, `receive ${op.text}`, from, start, end]),
  ...hops.map(({ kind, piece, peer, start, end }) => [rank, `${kind} chunk ${piece}`, peer, start, end]),
  [rank, "optimiser", -1, optimiser.start, optimiser.end],
];
const idleOf = ({ rank, idle }) => idle.map((each) => [rank, idleWords(each), each.start, each.end]);
const answer = ({ data, settings }) => {
  const stepOf = stepsOf(data);
  return settings.map((setting) => {
    const { ranks } = stepOf(setting);
    const copy = Object.fromEntries(ranks.flatMap(({ ops }) => ops.map((op) => [op.microbatch, op.copy])));
    return { rows: ranks.flatMap(rowsOf), idle: ranks.flatMap(idleOf), copy };
  });
};
"""


def drawn(folder: Path, explorer: StepExplorer, settings: list[dict[str, Any]]) -> list[Any]:
    """Return what the script draws for each setting: a row for each bar, the idle times in words, and the copy of each microbatch."""
    found: list[Any] = node.run(folder, DRAWN, {"data": explorer.data, "settings": settings})
    return found


def able(explorer: StepExplorer) -> list[dict[str, Any]]:
    """Return the settings of the explorer that can run."""
    return [setting for setting in settings_of(explorer) if "refusal" not in explorer.data["steps"][step_key(explorer.data, setting)]]


def rows_of(step: HybridStep) -> list[Row]:
    return [(row["device"], row["op"], row.get("peer", -1), row["start"], row["end"]) for row in step.timeline.to_rows()]


def same(found: Iterable[Row], wanted: list[Row]) -> None:
    """Raise AssertionError unless both have the same bars, in any order; times may differ in the ninth digit."""
    found, wanted = sorted(map(tuple, found)), sorted(wanted)
    assert [row[:3] for row in found] == [row[:3] for row in wanted]
    assert np.allclose([row[3:] for row in found], [row[3:] for row in wanted], rtol=1e-7, atol=1e-9)


# ---- what the data say ----


def test_bytes_of_a_ring_stand_in_the_order_of_its_pieces() -> None:
    """8 parameters in FP16 on 3 replicas: pieces of 3, 3 and 2 numbers."""
    explorer = StepExplorer(devices=1, replicas=3, overlap=False, microbatches=1, link=Link(1e-6, 1e9), gradient_bytes=16, wire=FP16)
    for entry in explorer.data["steps"].values():
        assert [nbytes for *_, nbytes in entry["rings"]] == [[6, 6, 4]]


def test_the_reports_step_is_drawn_with_its_corrected_numbers() -> None:
    explorer = report()
    explorer.microbatches, explorer.replicas = 8, 2
    entry = explorer.data["steps"][step_key(explorer.data, {name: getattr(explorer, name) for name in AXES})]
    assert (entry["makespan"], entry["all_reduce"], entry["single"]) == (1210, 40, 4160)
    assert entry["speedup"] == pytest.approx(4160 / 1210)
    assert entry["share"] == pytest.approx(40 / 1210)
    assert explorer.data["pipelines"]["1f1b/2/8"]["peak"] == [2, 1]
    assert explorer.step.makespan == 1210


def test_the_reports_table_over_microbatches_is_the_corrected_one() -> None:
    data = report().data
    entries = [data["steps"][f"1f1b/2/{count}/2/0/0"] for count in (2, 4, 8, 16)]
    assert [entry["makespan"] for entry in entries] == [430, 690, 1210, 2250]
    assert [round(entry["speedup"], 2) for entry in entries] == [2.42, 3.01, 3.44, 3.7]


@pytest.mark.needs("node")
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"schedules": tuple(REGISTRY), "devices": 2, "overlap": True, "p2p": 0.25, "optimiser": 1.5}, marks=pytest.mark.slow),
        {"schedules": ("zb-h1", "hanayo"), "devices": 2, "overlap": True, "p2p": 0.25, "optimiser": 1.5},
        {"schedules": ("1f1b", "interleaved"), "link": Link(1e-4, 1e9), "gradient_bytes": 999_998, "wire": (FP32, INT8), "ring_step": None},
        {"schedules": ("dualpipe", "dualpipe-v", "chimera"), "devices": 4, "microbatches": 8, "replicas": (1, 2), "pair_overlap": 0.5},
        {"forward": [1, 2, 1, 1, 5, 1], "backward": 2, "replicas": 3, "devices": 2},  # a slow rank in the last replica but one
    ],
)
def test_every_bar_of_every_setting_is_the_librarys(tmp_path: Path, arguments: dict[str, Any]) -> None:
    explorer = small(**arguments)
    settings = able(explorer)
    for setting, found in zip(settings, drawn(tmp_path, explorer, settings), strict=True):
        explorer.set_state(setting)
        same(found["rows"], rows_of(explorer.step))


@pytest.mark.needs("node")
@in_turn("overlap, name", [(False, "1f1b"), (True, "hanayo"), (True, "chimera"), (False, "dualpipe"), (True, "dualpipe-v")])
def test_bars_stand_where_a_naive_loop_over_events_puts_them(tmp_path: Path, overlap: bool, name: str) -> None:
    explorer = small(schedules=name, devices=2, replicas=3, overlap=overlap, ring_step=0.5, p2p=0.25, pair_overlap=0.5, optimiser=2)
    explorer.microbatches = 4
    setting = {name: getattr(explorer, name) for name in AXES}
    texts = explorer.data["pipelines"][f"{name}/2/4"]["orders"]
    node = lambda op: (op[1], int(op[0]), int(op[2]))  # noqa: E731 - kind, stage, microbatch
    orders = [[node(op) for op in re.findall(r"\w+", text)] for text in texts]
    chunks = REGISTRY[name].fewest_chunks
    ranks = list(product(range(3), range(2)))
    times = {"F": 1, "B": 2, "I": 1, "W": 1}
    durations = {(rank, kind): Fraction(time, chunks) for rank in ranks for kind, time in times.items()}
    pairs, saved = partners(build(name, 2, 4)), dict.fromkeys(ranks, Fraction(1, 2 * chunks))
    log = Step(orders, 3, durations, Fraction(1, 4), Fraction(1, 2 * chunks), Fraction(2), overlap, pairs, saved).run()
    (found,) = drawn(tmp_path, explorer, [setting])
    wanted = [(replica * 2 + device, f"{stage}{kind}{mb}", -1, *times) for ((replica, device), (kind, stage, mb)), times in log.ops.items()]
    wanted += [(replica * 2 + device, "optimiser", -1, *times) for (replica, device), times in log.optimisers.items()]
    same([row for row in found["rows"] if row[2] < 0], [(*row[:3], *map(float, row[3:])) for row in wanted])
    rings = {(stage, start) for _, stage, start, *_ in explorer.data["steps"][step_key(explorer.data, setting)]["rings"]}
    assert rings == {(stage, float(start)) for stage, (start, _) in log.rings.items()}


@given(st.integers(2, 6))
def test_each_piece_goes_once_around_and_is_then_handed_on(replicas: int) -> None:
    rounds = StepExplorer("gpipe", 1, replicas, 1, overlap=False).data["rounds"][str(replicas)]
    assert [hop["kind"] for hop in rounds] == ["reduce-scatter"] * (replicas - 1) + ["all-gather"] * (replicas - 1)
    held = {(rank, piece): {rank} for rank in range(replicas) for piece in range(replicas)}  # the ranks in each sum
    for hop in rounds:
        messages = [(held[rank, piece], to, piece) for rank, (piece, to) in enumerate(zip(hop["piece"], hop["to"], strict=True))]
        for carried, to, piece in messages:
            held[to, piece] = held[to, piece] | carried if hop["kind"] == "reduce-scatter" else carried
    assert all(ranks == set(range(replicas)) for ranks in held.values())


@in_turn("name, replicas", list(product(("chimera", "dualpipe", "hanayo"), (1, 2, 3))))
def test_the_gradients_of_a_stage_are_summed_over_all_that_run_it(name: str, replicas: int) -> None:
    """The ring of each stage joins all ranks that run the stage, also both copies of the weights in every replica."""
    data = StepExplorer(name, 4, replicas, 8, overlap=False).data
    orders = [re.findall(r"\w+", order) for order in data["pipelines"][f"{name}/4/8"]["orders"]]
    (entry,) = data["steps"].values()
    held = {(rank, stage): {rank} for rank in range(4 * replicas) for stage in {int(op[0]) for op in orders[rank % 4]}}
    running = {stage: {rank for rank, other in held if other == stage} for _, stage in held}
    summed = {(*key, piece): ranks for key, ranks in held.items() for piece in range(len(running[key[1]]))}
    for devices, stage, *_ in entry["rings"]:
        ring = [replica * 4 + device for replica in range(replicas) for device in np.atleast_1d(devices).tolist()]
        assert set(ring) == running[stage]
        for hop in data["rounds"][str(len(ring))]:
            moves = zip(ring, hop["piece"], hop["to"], strict=True)
            messages = [(summed[rank, stage, piece], ring[to], piece) for rank, piece, to in moves]
            for carried, to, piece in messages:
                summed[to, stage, piece] = summed[to, stage, piece] | carried if hop["kind"] == "reduce-scatter" else carried
    assert all(ranks == running[stage] for (_, stage, _), ranks in summed.items())


@pytest.mark.needs("node")
def test_a_microbatch_begins_on_the_first_device_of_its_copy(tmp_path: Path) -> None:
    explorer = StepExplorer(tuple(REGISTRY), 4, 1, 8, overlap=False)
    settings = able(explorer)
    assert len(settings) == len(REGISTRY)
    for setting, found in zip(settings, drawn(tmp_path, explorer, settings), strict=True):
        orders = explorer.data["pipelines"][f"{setting['schedule']}/4/8"]["orders"]
        begins = {op[2:]: device for device, order in enumerate(orders) for op in re.findall(r"\b0F\d+", order)}
        assert {microbatch: 3 * copy for microbatch, copy in found["copy"].items()} == begins
        assert len(set(begins.values())) == REGISTRY[setting["schedule"]].copies


def test_the_bytes_of_a_hop_are_those_of_its_piece() -> None:
    explorer = small(devices=1, replicas=3, link=Link(0, 1e9), gradient_bytes=20, wire=(FP32, FP16, INT8), ring_step=None)
    rings = [explorer.data["steps"][f"gpipe/1/2/3/{place}/0"]["rings"] for place in range(3)]
    assert [ring[0][-1] for ring in rings] == [[16, 12, 12], [8, 6, 6], [8, 7, 7]]  # 10 parameters are cut 4, 3, 3


@pytest.mark.needs("node")
@in_turn("overlap", [False, True])
def test_a_rank_waits_for_the_operation_that_the_library_names(tmp_path: Path, overlap: bool) -> None:
    """Before an operation, it is the one that the library's timeline names; before the rings, the last of the step, or a ring."""
    arguments: dict[str, Any] = {"devices": 4, "replicas": 2, "microbatches": 8, "ring_step": 3, "optimiser": 2, "overlap": overlap}
    explorer = StepExplorer(tuple(REGISTRY), **arguments, forward=[1, 1, 1, 1, 1, 2, 1, 1], p2p=0.25, pair_overlap=0.5)
    settings = able(explorer)
    assert len(settings) == len(REGISTRY)
    for setting, found in zip(settings, drawn(tmp_path, explorer, settings), strict=True):
        explorer.set_state(setting)
        timeline = explorer.step.timeline
        schedule, end = timeline.schedule, timeline.end
        free = np.where(schedule.before >= 0, end[schedule.before], 0)
        texts = [f"waits for {op} of rank {rank}" for op, rank in zip(schedule.ops, schedule.device.tolist(), strict=True)]
        blocking = timeline.blocking_operation().tolist()
        late = np.flatnonzero(timeline.start > free + 1e-9).tolist()
        wanted = {(int(schedule.device[row]), texts[blocking[row]], round(timeline.start[row].item(), 6)) for row in late}
        ends = [float(end[schedule.device == rank].max()) for rank in range(8)]
        idle = [(rank, words, start, stop) for rank, words, start, stop in found["idle"]]
        assert {(rank, words, round(stop, 6)) for rank, words, start, stop in idle if start < ends[rank] - 1e-6} == wanted
        after = {words for rank, words, start, _ in idle if start >= ends[rank] - 1e-6 and words.startswith("waits")}
        last = {text for text, done in zip(texts, end.tolist(), strict=True) if done > end.max() - 1e-9}
        rings = {f"waits for the ring of stage {stage}" for stage in range(schedule.stages)}
        assert after <= (rings if overlap else last)
        assert overlap or len(after) == 1


@pytest.mark.needs("node")
def test_costs_of_a_rank_reach_only_that_rank(tmp_path: Path) -> None:
    explorer = small(forward=[1, 1, 1, 5], devices=2, replicas=2, microbatches=4, schedules="gpipe", overlap=False, ring_step=0)
    ((found),) = drawn(tmp_path, explorer, settings_of(explorer))
    lengths = {
        rank: {end - start for each, op, _, start, end in found["rows"] if each == rank and re.fullmatch(r"\dF\d", op)} for rank in range(4)
    }
    assert lengths == {0: {1}, 1: {1}, 2: {1}, 3: {5}}


def test_a_grid_of_common_size_is_small_json() -> None:
    explorer = StepExplorer(("gpipe", "1f1b"), 4, (1, 2, 4, 8), (4, 8, 16), ring_step=(10, 20, 40), forward=50, backward=80)
    text = json.dumps(explorer.data, allow_nan=False, separators=(",", ":"))
    assert json.loads(text) == explorer.data
    assert "144 settings" in repr(explorer)
    assert len(text) < 80_000


def test_what_cannot_run_carries_the_sentence_of_why() -> None:
    data = small(schedules=("1f1b", "interleaved"), devices=4, microbatches=(4, 6)).data
    refused = {key: entry["refusal"] for key, entry in data["steps"].items() if "refusal" in entry}
    assert {key.rsplit("/", 3)[0] for key in refused} == {"interleaved/4/6"}
    assert set(refused.values()) == {"interleaved needs microbatches divisible by devices: 6 is not divisible by 4; try 4 or 8"}
    crowded = StepExplorer("1f1b", 4, (2, 64), 32, overlap=False).data["steps"]
    assert "makespan" in crowded["1f1b/4/32/2/0/0"]
    assert crowded["1f1b/4/32/64/0/0"]["refusal"].endswith(
        "more operations than the 12,500 that can be drawn; try fewer microbatches or replicas"
    )
    assert page_data.MOST_OPS == 12_500
    both = StepExplorer("chimera", 2, (4, 30), 2, overlap=False).data["steps"]  # 2 rings of 60 ranks have 14,160 hops
    assert "refusal" in both["chimera/2/2/30/0/0"]


def test_colours_are_the_palettes_and_in_no_script() -> None:
    spans = common().data["spans"]
    assert {kind: entry["colour"] for kind, entry in spans.items() if entry["colour"]} == dict(SPAN_COLOURS)
    texts = (str(StepExplorer._esm) + str(StepExplorer._css)).lower()
    assert not [colour for colour in (*SPAN_COLOURS.values(), *KIND_COLOURS.values()) if colour.lower() in texts]


# ---- the rings of a function ----


def own(rows: list[dict[str, Any]], ring_time: float) -> dict[int, tuple[float, float]]:
    """Return when each ring runs: the rank of a ring that is free last decides."""
    ready = {row["stage"]: row["end"] for row in sorted(rows, key=lambda row: row["end"])}
    ranks = {stage: {row["device"] for row in rows if row["stage"] == stage} for stage in ready}
    free: dict[int, float] = {}
    rings = {}
    for stage in sorted(ready, key=lambda stage: ready[stage]):
        start = max(ready[stage], *(free.get(rank, 0) for rank in ranks[stage]))
        free |= dict.fromkeys(ranks[stage], start + ring_time)
        rings[stage] = (start, start + ring_time)
    return rings


def late(rows: list[dict[str, Any]], ring_time: float) -> list[tuple[float, float]]:
    """Return rings that run one after the other, when all computing has ended."""
    last = max(row["end"] for row in rows)
    return [(last + turn * ring_time, last + (turn + 1) * ring_time) for turn in range(1 + max(row["stage"] for row in rows))]


@pytest.mark.needs("node")
def test_rings_of_a_function_are_drawn_where_it_puts_them(tmp_path: Path) -> None:
    """A right function shows what the library computes; other times of rings move the hops, the optimisers and the figures."""
    sizes: dict[str, Any] = {"schedules": ("1f1b", "interleaved", "chimera", "zb-h1"), "devices": 4, "microbatches": 8, "p2p": 0.25}
    both = {"right": own, "late": late}
    explorer = small(**sizes, replicas=(1, 3), ring_step=(0, 4), overlap=True, optimiser=2, rings=both, show={"overlap": "late"})
    assert "rings of late; rank" in repr(explorer)
    settings = able(explorer)
    assert len(settings) == 4 * 2 * 2 * 3
    for setting, found in zip(settings, drawn(tmp_path, explorer, settings), strict=True):
        explorer.set_state(setting)
        same(found["rows"], rows_of(explorer.step))
        right = explorer.data["steps"][step_key(explorer.data, setting | {"overlap": True})]
        if setting["overlap"] == "right":
            assert explorer.data["steps"][step_key(explorer.data, setting)] == right
    explorer.set_state({"schedule": "interleaved", "replicas": 3, "ring": 4, "overlap": "late"})
    (computing,) = {max(op["end"] for op in explorer.step.timeline.to_rows() if op["kind"] == "B")}
    assert explorer.step.makespan == computing + 8 * 8 + 2  # eight rings of four hops of 4 / 2 each, and the optimiser
    assert explorer.step.exposed_communication == 8 * 8


@in_turn(
    "function, sentence",
    [
        (
            lambda rows, _: {row["stage"]: (0, 20) for row in rows},
            "stage 0 of 'mine' starts at 0, before the gradients",
        ),
        (lambda rows, _: {row["stage"]: (99, 100) for row in rows}, "the ring of stage 0 of 'mine' takes 1, but each ring takes 20"),
        (lambda *_: {0: (99, 119)}, "the function of 'mine' returns no ring of stage 1"),
        (lambda rows, _: {row["stage"]: (99, 119) for row in rows}, "the rings of stages 0 and 2 of 'mine' run at the same time from 99"),
        (lambda *_: {9: (0, 1)}, "the rings of 'mine' cannot be drawn: the stage of a ring"),
        (lambda *_: None, "the rings of 'mine' cannot be drawn: rings must have a start and an end for each stage"),
        (lambda *_: {}[3], "the function of 'mine' raises KeyError: 3"),
        (lambda *_: [(float("nan"), 1)] * 4, "the rings of 'mine' cannot be drawn:"),
    ],
)
def test_rings_that_cannot_run_are_refused_with_the_reason(function: Any, sentence: str) -> None:
    explorer = small(schedules="interleaved", replicas=2, microbatches=2, ring_step=20, rings={"mine": function})
    assert sentence in explorer.data["steps"]["interleaved/2/2/2/0/2"]["refusal"]
    explorer.overlap = "mine"
    with refusal("unsupported-size", sentence):
        _ = explorer.step


@pytest.mark.needs("node")
def test_a_link_can_set_a_bool_and_a_title(tmp_path: Path) -> None:
    code = """
import { oneOf, settingIn } from "./setting.js";
const answer = ({ words, values }) => words.map((word) => {
  const overlap = "mine";
  return settingIn(new Map([["overlap", word]]), { overlap }, { overlap }, () => ({ overlap: oneOf(values) })).setting.overlap;
});
"""
    assert node.run(tmp_path, code, {"words": ["true", "mine"], "values": [False, True, "mine"]}) == [True, "mine"]


# ---- the setting and the cursor ----


def test_an_explorer_begins_where_it_is_told_or_at_the_first_values_that_run() -> None:
    explorer = small(show={"replicas": 3, "overlap": True, "ring": 0.5, "rank": 5, "time": 2.5})
    assert repr(explorer).endswith("; gpipe, 2 devices, 3 replicas, 2 microbatches, ring 0.5, overlap; rank 5 at 2.5>")
    assert small(schedules="interleaved", devices=4, microbatches=(2, 4)).microbatches == 4
    assert StepExplorer(link=Link(0, 1e9), gradient_bytes=8, wire=(FP32, INT8), show={"ring": INT8}).ring == "INT8"


def test_a_rank_that_a_smaller_mesh_lacks_becomes_the_first() -> None:
    explorer = small(show={"replicas": 3, "rank": 4})
    explorer.replicas = 2  # ranks 0 to 3 are left
    assert explorer.rank == 0
    explorer.rank = 3
    explorer.microbatches = 4
    assert explorer.rank == 3


@in_turn(
    "trait, value, code, word",
    [
        ("schedule", "1f1", "unknown-name", "'1f1b'"),
        ("schedule", "hanayo", "unknown-name", "'hanayo'"),
        ("replicas", 4, "out-of-range", "replicas = 4: choose from 1, 2, 3"),
        ("replicas", True, "out-of-range", "replicas = True"),
        ("ring", "FP16", "out-of-range", "ring = 'FP16': choose from 0, 0.5"),
        ("overlap", 1, "out-of-range", "overlap = 1: choose from False, True"),
        ("rank", 2, "out-of-range", "rank 2"),
        ("rank", -1, "too-small", "rank"),
        ("time", float("nan"), "not-finite", "time"),
        ("time", [1], "wrong-shape", "time must be one number, not [1]"),
    ],
)
def test_what_the_explorer_does_not_have_is_refused_and_changes_nothing(trait: str, value: Any, code: str, word: str) -> None:
    refused_and_unchanged(partial(small, schedules="1f1b", microbatches=2), trait, value, code, word)


def test_the_text_changes_with_the_data_and_with_the_setting() -> None:
    assert len({repr(common()), repr(small(forward=1.5)), repr(small(unit="s")), repr(small(show={"rank": 1}))}) == 4


# ---- wrong arguments ----


@in_turn(
    "arguments, code, word",
    [
        ({"schedules": ()}, "empty", "schedules"),
        ({"replicas": 0}, "too-small", "replicas"),
        ({"overlap": ()}, "empty", "overlap"),
        ({"rings": own}, "wrong-type", "rings must be functions by title"),
        ({"rings": {"mine": 3}}, "wrong-type", "'mine' must stand for a function of rows and ring_time, not 3"),
        ({"rings": {"true": own}}, "duplicate-name", "choose another title"),
        ({"rings": {"": own}}, "malformed-name", "a title must be a few words"),
        ({"overlap": "yes"}, "not-true-or-false", "each value of overlap must be True or False, not 'yes'"),
        ({"wire": [[1]], "link": 3}, "wrong-type", 'INT8 or WireFormat("INT8", block=256), or several, not [1]'),
        ({"ring_step": -1}, "negative", "ring_step"),
        ({"link": Link(0, 1e9)}, "conflicting-arguments", "ring_step"),
        ({"link": Link(0, 1e9), "ring_step": None}, "missing-argument", "gradient_bytes"),
        ({"wire": "FP16", "link": Link(0, 1e9), "gradient_bytes": 8, "ring_step": None}, "wrong-type", "'FP16'"),
        ({"pair_overlap": 1.5}, "out-of-range", "1.5"),
        ({"p2p": [[0], [1]]}, "several-settings", "costs"),
        ({"optimiser": [1, 2]}, "wrong-shape", "optimiser"),
        ({"forward": [1, 2, 3]}, "does-not-fit", "3 devices"),
        ({"unit": 3}, "unknown-name", "unit"),
        ({"schedules": "interleaved", "devices": 4, "microbatches": (2, 6)}, "unsupported-size", "no setting of this grid can run"),
        ({"microbatches": 10**6}, "unsupported-size", "no setting of this grid can run"),
        ({"show": 3}, "wrong-type", "show"),
        ({"show": {"replica": 2}}, "unknown-name", "'replicas'"),
        ({"show": {"rank": 2}}, "out-of-range", "rank 2"),
        (
            {"schedules": ("1f1b", "interleaved"), "microbatches": (2, 3), "show": {"schedule": "interleaved", "microbatches": 3}},
            "unsupported-size",
            "cannot begin",
        ),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], code: str, word: str) -> None:
    with refusal(code, word):
        small(**arguments)


def test_more_data_than_a_page_can_carry_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert page_data.MOST_BYTES == 2_000_000
    length = len(page_data.compact_json(common().data))
    for limit in (length, length - 1, 300):
        monkeypatch.setattr(page_data, "MOST_BYTES", limit)
        with contextlib.nullcontext() if limit == length else refusal("too-large", "MB"):
            small()


@examples(40)
@given(
    st.dictionaries(
        st.sampled_from(["schedules", "devices", "replicas", "ring_step", "overlap", "wire", "link", "show", "unit"]), junk, max_size=2
    )
)
def test_junk_is_refused_or_drawn(arguments: dict[str, Any]) -> None:
    with contextlib.suppress(HybridLabError):
        json.dumps(small(**arguments).data, allow_nan=False)
