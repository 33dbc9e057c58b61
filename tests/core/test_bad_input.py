"""Give junk to every public function: the outcome must be a valid result, or a HybridLabError that says what would work."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st
from misuse import BATCH, COSTS, SCHEDULE, TIMELINE, junk, outcome, small, usual_or_junk
from profiles import examples

import hybridlab
from hybridlab import REGISTRY, Costs, Op, Schedule, Timeline, build, formulas, register, simulate
from hybridlab.schedules import registry


def times_are_sound(timeline: Timeline) -> None:
    assert np.isfinite(timeline.start).all()
    assert np.isfinite(timeline.end).all()
    assert (timeline.end >= timeline.start).all()


cost = usual_or_junk([1.0, 2, [1, 2], [[1], [2]]])


@examples(300)
@given(name=usual_or_junk(list(REGISTRY)), devices=small, microbatches=small, chunks=small)
def test_build(name: Any, devices: Any, microbatches: Any, chunks: Any) -> None:
    if all(isinstance(size, int) and 0 < size <= 10**6 for size in (devices, microbatches, chunks)):
        devices, microbatches, chunks = (min(size, 8) for size in (devices, microbatches, chunks))
    schedule = outcome(build, name, devices, microbatches, chunks)
    if schedule is not None:
        assert (schedule.devices, schedule.microbatches) == (devices, microbatches)


@examples(400)
@given(name=usual_or_junk(["mine"]), orders=usual_or_junk([[["0F0", "0B0"]], [["0F0", "0B0"], ["1F0", "1B0"]]]))
def test_schedule(name: Any, orders: Any) -> None:
    schedule = outcome(Schedule, name, orders)
    if schedule is not None:
        assert Schedule.parse(str(schedule), name=schedule.name) == schedule


words = st.sampled_from([
    "0F0", "0B0", "1F0", "1B0", "0I0", "0W0", "0f0", "F", "٣F٣", "0F99999999999", "device 0:", "device 1:",
    "\t", " ", "\n", "\r\n", ",", "-", "[", "]", "None", "Rank 0", "Step 0: ",
])  # fmt: skip


@examples(400)
@given(
    text=usual_or_junk(["0F0 0B0"]) | st.lists(words, max_size=8).map("".join) | st.text(),
    name=usual_or_junk(["mine"]),
)
def test_reading_text_and_csv(text: Any, name: Any) -> None:
    for read in (Schedule.parse, Schedule.from_csv):
        schedule = outcome(read, text, name=name)
        if schedule is not None:
            assert Schedule.parse(str(schedule), name=name) == schedule


@examples(400)
@given(
    name=usual_or_junk(["mine"]),
    slots=usual_or_junk([[[[0, 1]], [[2, 3]]]]) | st.lists(st.lists(st.lists(st.integers(-2, 9), max_size=2), max_size=2), max_size=3),
    device_of=usual_or_junk([[0], [0, 1], [0, 0], [1, 0], [0, 2], [-1], [1]]),
)
def test_from_slots(name: Any, slots: Any, device_of: Any) -> None:
    schedule = outcome(Schedule.from_slots, name, slots, device_of)
    if schedule is not None:
        assert Schedule.parse(str(schedule), name=schedule.name) == schedule
        assert schedule.chunks * schedule.devices == schedule.stages


@examples(200)
@given(text=junk)
def test_op_parse(text: Any) -> None:
    op = outcome(Op.parse, text)
    if op is not None:
        assert Op.parse(str(op)) == op


@examples(200)
@given(op=junk)
def test_needs(op: Any) -> None:
    needs = outcome(SCHEDULE.needs, op)
    assert needs is None or all(need in SCHEDULE.ops for need in needs)


@examples(400)
@given(forward=cost, backward=cost, share=usual_or_junk([0.5, 0, 1]), p2p=cost)
def test_costs_and_simulate(forward: Any, backward: Any, share: Any, p2p: Any) -> None:
    costs = outcome(Costs, forward=forward, backward=backward, weight_share=share, p2p=p2p)
    if costs is not None and math.prod(costs.batch) < 1000:
        assert (costs.weight_gradient <= costs.backward).all()
        timeline = outcome(simulate, SCHEDULE, costs)
        if timeline is not None:
            times_are_sound(timeline)


@examples(300)
@given(kind=usual_or_junk(["F", "B", "I", "W"]), device=small, chunks=small)
def test_duration(kind: Any, device: Any, chunks: Any) -> None:
    duration = outcome(COSTS.duration, kind, device, chunks)
    assert duration is None or duration >= 0


@examples(300)
@given(
    devices=usual_or_junk([[0], [0, 1], []]),
    factor=usual_or_junk([1.5, 0]),
    of=usual_or_junk([None, 2]),
    named=st.booleans(),
)
def test_slower(devices: Any, factor: Any, of: Any, named: bool) -> None:
    costs = outcome((COSTS if named else Costs(forward=1, backward=2)).slower, devices, factor, of)
    if costs is not None:
        assert np.isfinite(costs.forward).all()
        assert np.isfinite(costs.backward).all()


@examples(200)
@given(schedule=usual_or_junk([SCHEDULE]), costs=usual_or_junk([COSTS]))
def test_simulate(schedule: Any, costs: Any) -> None:
    timeline = outcome(simulate, schedule, costs)
    if timeline is not None:
        times_are_sound(timeline)


eight = st.lists(st.one_of(st.floats(-5, 5), st.floats(), st.integers(-2, 9)), min_size=8, max_size=8)


@examples(300)
@given(
    schedule=usual_or_junk([SCHEDULE]),
    start=usual_or_junk([[0] * 8]) | eight,
    end=usual_or_junk([[9] * 8, [0] * 8]) | eight,
)
def test_timeline(schedule: Any, start: Any, end: Any) -> None:
    timeline = outcome(Timeline, schedule, start, end)
    if timeline is not None:
        times_are_sound(timeline)
        assert timeline.makespan >= 0
        assert timeline.device_span <= timeline.makespan
        repr(timeline)


@examples(200)
@given(setting=st.lists(usual_or_junk([0, 1]), max_size=3), batched=st.booleans())
def test_at(setting: list[Any], batched: bool) -> None:
    timeline = outcome((BATCH if batched else TIMELINE).at, *setting)
    if timeline is not None:
        assert timeline.start.shape[-1:] == SCHEDULE.kind.shape
        assert timeline.start.ndim <= 1 + batched


@examples(200)
@given(unit=usual_or_junk(["s", "ms", "us", None]))
def test_chrome_trace(unit: Any) -> None:
    timeline = outcome(Timeline, SCHEDULE, TIMELINE.start, TIMELINE.end, unit=unit)
    trace = None if timeline is None else outcome(timeline.to_chrome_trace)
    assert trace is None or len(trace["traceEvents"]) > len(SCHEDULE.ops)


@examples(300)
@given(
    name=usual_or_junk(["mine", "1f1b"]),
    texts=st.tuples(*[usual_or_junk(["text"])] * 3),
    placement=usual_or_junk(["looped", "folded"]),
    fewest=small,
    step=small,
    groups=usual_or_junk([True, False]),
    slots=usual_or_junk([np.array([[[0, 1]], [[2, 3]]])]),
)
def test_register(name: Any, texts: Any, placement: Any, fewest: Any, step: Any, groups: Any, slots: Any) -> None:
    title, summary, source = texts
    named = {"title": title, "summary": summary, "source": source, "placement": placement}
    named |= {"fewest_chunks": fewest, "chunk_step": step, "whole_groups": groups}
    add = outcome(register, name, **named)
    if add is None or len(name) > 100:
        return  # only the author of a schedule with such a long name would ask for it
    try:
        assert outcome(add, lambda devices, microbatches, chunks: slots) is not None
        outcome(build, name, 1, 2)
        assert outcome(build, "gpipe", 2, 2) is not None
        assert outcome(build, "no such schedule", 2, 2) is None
    finally:
        registry._FAMILIES.pop(name, None)


FORMULAS = [
    formula
    for name, formula in inspect.getmembers(formulas, inspect.isfunction)
    if formula.__module__.startswith("hybridlab.formulas.") and name[0] != "_"
]


@in_turn("formula", FORMULAS)
@examples(60)
@given(data=st.data())
def test_formulas(formula: Callable[..., Any], data: st.DataObject) -> None:
    usual = {"schedule": ["gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "v-half"]}
    arguments = [data.draw(usual_or_junk(usual.get(name, [1, 2, 3, 4])), label=name) for name in inspect.signature(formula).parameters]
    value = outcome(formula, *arguments)
    assert value is None or (isinstance(value, (int, float)) and math.isfinite(value) and value >= 0)


def test_the_junk_tests_reach_every_closed_form() -> None:
    assert len(FORMULAS) >= 7


@examples(100)
@given(devices=small, microbatches=small, chunks=small, name=st.sampled_from(sorted(REGISTRY)))
def test_sizes_asked_of_a_family(devices: Any, microbatches: Any, chunks: Any, name: str) -> None:
    why = outcome(REGISTRY[name].refusal, devices, microbatches, chunks)
    assert why is None or isinstance(why, str)
    table = outcome(Costs(forward=1, backward=2).table, devices, chunks)
    assert table is None or np.isfinite(table).all()


def test_every_public_function_is_thrown_junk_at() -> None:
    """A name added to the package fails here until a test gives junk to it, in this file or in the tests of the name."""
    tried = {"build", "Schedule", "Op", "Costs", "simulate", "Timeline", "register", "formulas"}
    values = {"Kind", "REGISTRY", "HybridLabError", "InvalidSchedule", "Deadlock", "RunFailed", "UnsupportedSize"}
    values |= {"FP32", "FP16", "BF16", "INT8", "INT4", "E4M3", "E5M2", "HybridStep", "RingResult", "Sweep"}
    values |= {"A100_40GB", "A100_80GB", "B200", "B300", "GB200", "GB300", "H100", "H200", "V100"}
    elsewhere = {"check", "published", "Mesh", "WireFormat", "hybrid_step", "recomputed_peak", "ring_all_reduce", "sweep"}
    elsewhere |= {"Student", "part", "plot", "simulate_many", "widgets"}
    elsewhere |= {"Link", "Memory", "Plan", "Transformer", "best_cut", "predict", "rank", "schedule_for", "search"}
    assert set(hybridlab.__all__) <= tried | values | elsewhere
