"""Test the reader of traces: own traces come back exactly, torch's have the orders that ran, and bad ones are refused by name."""

import gzip
import json
import tracemalloc
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from strategies import Size, settings_of, sizes

from hybridlab import REGISTRY, Costs, HybridLabError, InvalidSchedule, Schedule, Timeline, build, hybrid_step, simulate
from hybridlab.step import Replicated, replicate

DATA = Path(__file__).resolve().parents[1] / "data"
TORCH = [DATA / f"torch_trace_rank{rank}.json.gz" for rank in range(4)]
PAGE = Path(__file__).resolve().parents[2] / "book" / "your_trace"
WORDS = r"(?P<kind>\w+) of stage (?P<stage>\d+), microbatch (?P<microbatch>\d+)"
Events = list[dict[str, Any]]


def written(folder: Path, trace: Any, name: str = "trace.json") -> Path:
    path = folder / name
    text = trace if isinstance(trace, str) else json.dumps(trace)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def event(name: str, start: float, length: float, track: int = 0, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "ts": start, "dur": length, "pid": 0, "tid": track, **more}


def two_stages(scale: float = 1000) -> Events:
    """Return the events of one microbatch on two devices: 0F0 [0, 1], 1F0 [2, 3], 1B0 [3, 5], 0B0 [6, 8] times ``scale``."""
    times = [("0F0", 0, 1, 0), ("1F0", 2, 1, 1), ("1B0", 3, 2, 1), ("0B0", 6, 2, 0)]
    return [event(name, start * scale, length * scale, track) for name, start, length, track in times]


def read(folder: Path, trace: Any, **options: Any) -> Timeline:
    return Timeline.from_chrome_trace(written(folder, trace), **options)


# Traces of this library


@examples(60)
@given(size=sizes(), data=st.data(), unit=st.sampled_from(["s", "ms", "us"]))
def test_a_simulated_timeline_comes_back_bit_by_bit(
    tmp_path_factory: pytest.TempPathFactory, size: Size, data: st.DataObject, unit: str
) -> None:
    timeline = simulate(size.build(), data.draw(settings_of(size.devices)).costs())
    timeline = Timeline(timeline.schedule, timeline.start, timeline.end, None, unit)
    again = read(tmp_path_factory.mktemp("own"), timeline.to_chrome_trace())
    assert again.start.tobytes() == timeline.start.tobytes()
    assert again.end.tobytes() == timeline.end.tobytes()
    assert (again.schedule, again.unit, again.spans, again) == (timeline.schedule, unit, None, timeline)


@in_turn("name, ending", zip(REGISTRY, cycle([".json", ".json.gz"])))
def test_every_schedule_comes_back_with_its_pairs(tmp_path: Path, name: str, ending: str) -> None:
    timeline = simulate(build(name, 4, 8), Costs(forward=1 / 3, backward=0.7, p2p=0.1, overlap=0.3))
    again = Timeline.from_chrome_trace(written(tmp_path, timeline.to_chrome_trace(), "trace" + ending))
    assert again == timeline
    assert again.schedule.turns == timeline.schedule.turns


@in_turn("replicas", [1, 3])
@in_turn("overlap", [False, True])
def test_a_step_of_a_mesh_comes_back_with_its_spans(tmp_path: Path, replicas: int, overlap: bool) -> None:
    costs = Costs(forward=1 / 3, backward=0.7, p2p=0.1)
    step = hybrid_step(build("1f1b", 3, 6), costs, replicas, ring_step=0.7, optimiser=0.9, overlap=overlap)
    again = read(tmp_path, step.timeline.to_chrome_trace())
    assert again == step.timeline
    assert isinstance(again.schedule, Replicated) == isinstance(step.timeline.schedule, Replicated)
    assert again.spans is not None
    assert again.spans == step.timeline.spans
    assert again.spans.to_rows(again.ops) == step.timeline.spans.to_rows(step.timeline.ops)  # type: ignore[union-attr]


def test_replicas_without_spans_come_back(tmp_path: Path) -> None:
    timeline = simulate(replicate(build("dualpipe", 2, 4), 2), Costs(forward=1, backward=2, overlap=0.5))
    assert read(tmp_path, timeline.to_chrome_trace()) == timeline


def test_a_trace_of_the_last_version_is_read_from_its_events(tmp_path: Path) -> None:
    """It has no entry of its own, so it is read like the trace of another program."""
    timeline = simulate(build("dualpipe-v", 2, 4), Costs(forward=1, backward=2, p2p=0.25, overlap=0.5))
    trace = timeline.to_chrome_trace()
    del trace["otherData"]
    again = read(tmp_path, trace, name="dualpipe-v")
    assert again.schedule == timeline.schedule
    assert again.start == pytest.approx(timeline.start)


@in_turn(
    "change, word",
    [
        (lambda trace: trace["traceEvents"].remove(next(each for each in trace["traceEvents"] if each["name"] == "1F0")), "1F0"),
        (lambda trace: trace["traceEvents"].append(next(each for each in trace["traceEvents"] if each["name"] == "1F0")), "1F0 twice"),
        (lambda trace: trace["traceEvents"].append(event("0F99", 0, 1, cat="F", args={})), "0F99"),
        (lambda trace: trace["otherData"]["hybridlab"].pop("unit"), "unit"),
    ],
)
def test_an_own_trace_that_was_changed_is_refused(tmp_path: Path, change: Callable[[Any], Any], word: str) -> None:
    trace = hybrid_step(build("1f1b", 2, 2), Costs(forward=1, backward=2, p2p=1), 1, ring_step=1).timeline.to_chrome_trace()
    change(trace)
    with refusal("damaged-trace", "trace.json", word):
        read(tmp_path, trace)


# Traces of torch.profiler


def events_of(path: Path) -> tuple[dict[str, Any], Events]:
    trace = json.loads(gzip.decompress(path.read_bytes()))
    return trace, trace["traceEvents"]


@in_turn("name, files", [("zb-v", TORCH), ("1f1b", [PAGE / f"rank{rank}.json.gz" for rank in range(4)])])
def test_torchs_trace_has_the_orders_that_torch_was_given(name: str, files: list[Path]) -> None:
    timeline = Timeline.from_chrome_trace(files, name=name)
    assert timeline.schedule == build(name, 4, 8)
    assert timeline.peak_activations.tolist() == simulate(build(name, 4, 8), Costs(forward=1, backward=2)).peak_activations.tolist()
    assert (timeline.unit, timeline.start.min()) == ("ms", 0)
    source = timeline.schedule.source
    assert (timeline.start >= np.where(source >= 0, timeline.end[source], 0)).all()


def test_an_operation_of_torch_lasts_from_its_first_operator_to_the_end_of_its_range() -> None:
    """Each range is searched with plain loops, and lengths are compared in microseconds."""
    timeline = Timeline.from_chrome_trace(TORCH)
    found = {str(op): 1000 * (end - start) for op, start, end in zip(timeline.ops, timeline.start, timeline.end, strict=True)}
    longest = 0.0
    for path in TORCH:
        events = events_of(path)[1]
        for each in events:
            name = each["name"].removeprefix("PP:")
            if name not in found:
                continue
            end = each["ts"] + each["dur"]
            inside = [other["ts"] for other in events if other["cat"] == "cpu_op" and each["ts"] <= other["ts"] < end]
            waits = [other["ts"] for other in events if other["name"].startswith("c10d::") and each["ts"] <= other["ts"] < end]
            work = sorted(set(inside) - set(waits))
            assert found[name] == pytest.approx(end - work[0] if work else 0, abs=0.01)
            longest = max(longest, each["dur"] - found[name])
    assert longest > 10_000, "a range contains the wait for its input"
    assert found["0I0"] == 0, "torch leaves all of stage 0's backward to W"


def test_the_order_of_files_and_the_way_to_name_them_mean_nothing(tmp_path: Path) -> None:
    wanted = Timeline.from_chrome_trace(TORCH, name="run")
    for path in (TORCH[::-1], map(str, TORCH), str(DATA / "torch_trace_rank*.json.gz")):
        assert Timeline.from_chrome_trace(path, name="run") == wanted
    for path in TORCH:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert Timeline.from_chrome_trace(tmp_path, name="run") == wanted


def test_the_clocks_of_files_begin_at_different_times(tmp_path: Path) -> None:
    wanted = Timeline.from_chrome_trace(TORCH, name="run")
    for rank, path in enumerate(TORCH):
        trace, events = events_of(path)
        trace["baseTimeNanoseconds"] += rank * 5_000_000_000
        for each in events:
            each["ts"] -= rank * 5_000_000
        written(tmp_path, trace, f"{rank}.json")
    again = Timeline.from_chrome_trace(tmp_path, name="run")
    assert again.start == pytest.approx(wanted.start, abs=2e-6)


def test_shipped_traces_name_no_machine() -> None:
    for path in [*TORCH, *PAGE.glob("*.gz")]:
        trace, events = events_of(path)
        assert trace.keys() == {"schemaVersion", "distributedInfo", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents"}
        assert not {key for each in events for key in each} - {"ph", "cat", "name", "ts", "dur", "pid", "tid"}
        assert not [each["name"] for each in events if "/" in each["name"]]
        assert path.stat().st_size < 16_384


def test_with_kernels_an_operation_lasts_from_the_first_to_the_last_of_its_own(tmp_path: Path) -> None:
    """Kernels run later than the calls that launch them; the kernels of NCCL are messages."""
    events: Events = []
    for number, (name, launch, start, end) in enumerate([("0F0", 0, 100, 150), ("0B0", 20, 170, 400)]):
        events.append(event(f"PP:{name}", launch, 15, cat="user_annotation"))
        events.append(event(f"PP:{name}", start, end - start, 7, cat="gpu_user_annotation"))
        events += [
            event("cudaLaunchKernel", launch + each, 1, cat="cuda_runtime", args={"correlation": 10 * number + each}) for each in (1, 5)
        ]
        events.append(event("gemm", start, 10, 7, cat="kernel", args={"correlation": 10 * number + 1}))
        events.append(event("gemm", end - 20, 20, 7, cat="kernel", args={"correlation": 10 * number + 5}))
        events.append(event("cudaLaunchKernel", launch + 9, 1, cat="cuda_runtime", args={"correlation": 10 * number + 9}))
        events.append(event("ncclDevKernel_SendRecv", end, 500, 8, cat="kernel", args={"correlation": 10 * number + 9}))
    timeline = read(tmp_path, events)
    assert (timeline.start * 1000).tolist() == pytest.approx([0, 70])
    assert (timeline.end * 1000).tolist() == pytest.approx([50, 300])


def test_an_operation_without_kernels_follows_the_one_before_it(tmp_path: Path) -> None:
    """Stage 0 has no input gradient to compute. The call returns long before the kernels of earlier operations have ended."""
    events = [event(f"PP:{name}", 20 * place, 10, cat="user_annotation") for place, name in enumerate(["0F0", "0I0", "0W0"])]
    for number, (launch, start) in enumerate([(1, 100), (41, 160)]):
        events.append(event("cudaLaunchKernel", launch, 1, cat="cuda_runtime", args={"correlation": number}))
        events.append(event("gemm", start, 50, 7, cat="kernel", args={"correlation": number}))
    timeline = read(tmp_path, events)
    assert str(timeline.schedule) == "device 0: 0F0 0I0 0W0"
    assert (timeline.end - timeline.start).tolist() == pytest.approx([0.05, 0, 0.05])


# Traces of other programs


@in_turn(
    "words, kinds",
    [(("F", "B"), "FB"), (("forward", "backward"), "FB"), (("FWD", "bwd"), "FB"), (("Forward", "dgrad", "wgrad"), "FIW")],
)
def test_a_pattern_finds_operations_by_words_in_any_case(tmp_path: Path, words: tuple[str, ...], kinds: str) -> None:
    events = [event(f"{word} of stage 0, microbatch 0", 10 * place, 5) for place, word in enumerate(words)]
    timeline = read(tmp_path, {"traceEvents": events}, pattern=WORDS, name="mine")
    assert str(timeline.schedule) == f"device 0: {' '.join(f'0{kind}0' for kind in kinds)}"
    assert timeline.makespan == pytest.approx((10 * len(words) - 5) / 1000)


@in_turn("unit", ["ms", "ns"])
def test_times_are_microseconds_whatever_a_viewer_shows(tmp_path: Path, unit: str) -> None:
    timeline = read(tmp_path, {"traceEvents": two_stages(), "displayTimeUnit": unit})
    assert (timeline.makespan, timeline.unit) == (8, "ms")
    assert timeline.busy.tolist() == [3, 3]


def test_devices_are_threads_processes_files_or_what_the_pattern_names(tmp_path: Path) -> None:
    wanted = read(tmp_path, two_stages(), name="run")
    processes = [each | {"pid": 9 + each["tid"], "tid": each["name"]} for each in two_stages()]
    assert read(tmp_path, processes, name="run") == wanted
    one_track = [each | {"name": f"gpu{each['tid'] * 9 + 1} {each['name']}", "tid": 0} for each in two_stages()]
    named = r"gpu(?P<device>\d+) (?P<stage>\d+)(?P<kind>[FB])(?P<microbatch>\d+)"
    assert read(tmp_path, one_track, pattern=named, name="run") == wanted
    files = [written(tmp_path, [each for each in two_stages() if each["tid"] == rank], f"{rank}.json") for rank in (0, 1)]
    assert Timeline.from_chrome_trace(files, name="run") == wanted
    assert wanted.peak_activations.tolist() == [1, 1]


def test_devices_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    events = [event(f"{stage}{kind}0", 10 * place, 5, 2 + stage) for place, (stage, kind) in enumerate(_down_and_up(11))]
    assert read(tmp_path, events).schedule.device_of == tuple(range(11))


def _down_and_up(stages: int) -> list[tuple[int, str]]:
    return [(stage, "F") for stage in range(stages)] + [(stage, "B") for stage in reversed(range(stages))]


def test_events_of_a_begin_and_an_end_are_read(tmp_path: Path) -> None:
    pairs = [
        [event(each["name"], each["ts"], 0, each["tid"], ph="B"), event("", each["ts"] + each["dur"], 0, each["tid"], ph="E")]
        for each in two_stages()
    ]
    events = [{key: value for key, value in each.items() if key != "dur"} for pair in pairs for each in pair]
    assert read(tmp_path, events) == read(tmp_path, two_stages())


def test_a_list_without_its_last_bracket_is_a_trace(tmp_path: Path) -> None:
    """The format allows it, because a program may crash while it writes."""
    text = json.dumps(two_stages())[:-1]
    assert read(tmp_path, text + ",\n") == read(tmp_path, text) == read(tmp_path, two_stages())


def test_one_of_several_steps_is_chosen(tmp_path: Path) -> None:
    events = [each | {"ts": each["ts"] + 10_000 * step, "dur": each["dur"] * (1 - step / 10)} for step in range(3) for each in two_stages()]
    for step in range(3):
        assert read(tmp_path, events, step=step).busy == pytest.approx([3 - 0.3 * step] * 2)
    with refusal("several-steps", "3 steps", "step=0 to 2"):
        read(tmp_path, events)
    with refusal("out-of-range", "3 steps"):
        read(tmp_path, events, step=3)
    with refusal("missing-operation", "1B0", "thread 1", "2 times"):
        read(tmp_path, [each for place, each in enumerate(events) if place != 6], step=0)


# Clocks


def test_clocks_that_disagree_are_named_and_can_be_shifted(tmp_path: Path) -> None:
    """Device 1 is 5 ms too early. Both messages took 1 ms, so the shift gives back what happened."""
    wanted = read(tmp_path, two_stages(), name="run")
    early = [each | {"ts": each["ts"] - 5000 * each["tid"]} for each in two_stages()]
    with refusal("clocks-disagree", "1F0", "0F0", "thread 1", "4.000 ms", "shift_clocks=True"):
        read(tmp_path, early)
    assert read(tmp_path, early, shift_clocks=True, name="run") == wanted
    assert read(tmp_path, two_stages(), shift_clocks=True, name="run") == wanted


def test_a_shift_cannot_repair_messages_that_are_too_fast_both_ways(tmp_path: Path) -> None:
    wrong = [each | {"ts": {"0F0": 0, "1F0": 500, "1B0": 2000, "0B0": 3500}[each["name"]]} for each in two_stages()]
    with refusal("clocks-disagree", "no shift helps"):
        read(tmp_path, wrong, shift_clocks=True)


# Bad traces

FIRST = json.dumps(two_stages()[0])


@in_turn(
    "text, code, words",
    [
        ("", "empty", ["trace.json"]),
        ("stage,forward\n0,10", "not-a-trace", ["traceEvents"]),
        ('{"schemaVersion": 1, "events": []}', "not-a-trace", ["schemaVersion, events"]),
        ('{"traceEvents": 3}', "not-a-trace", ["not a list"]),
        ('{"traceEvents": [' + FIRST + ", 3]}", "not-an-event", ["event 1", "3"]),
        ('{"traceEvents": [' + FIRST + ', {"ph": "X", "na', "cut-off", ["event 0 ('0F0')"]),
        ('{"traceEvents": [' + FIRST + ",", "cut-off", ["event 0 ('0F0')"]),
        ('{"traceEvents": [', "cut-off", ["before its first event"]),
        ('{"traceEvents": [' + FIRST + ', {"ph": X}, {"ph": "X"}]}', "not-json", ["event 0 ('0F0')", "line 1, column 95"]),
        ('{"traceEvents": []}', "no-operations", ["none", "pattern"]),
        ('{"traceEvents": [{"ph": "X", "name": "step 1"}]}', "no-operations", ["'step 1'", "0F1"]),
        ('[{"ph": "X", "name": "0F0", "dur": 1}]', "missing-time", ["'0F0'", "ts"]),
        ('[{"ph": "X", "name": "0F0", "ts": 1}]', "missing-time", ["'0F0'", "dur"]),
        ('[{"ph": "X", "name": "0F0", "ts": "now", "dur": 1}]', "not-a-time", ["'0F0'", "'now'"]),
        ('[{"ph": "X", "name": "0F0", "ts": 1, "dur": -1}]', "not-a-time", ["'0F0'", "-1"]),
        ('[{"ph": "X", "name": "0F0", "ts": NaN, "dur": 1}]', "not-a-time", ["'0F0'", "nan"]),
    ],
)
def test_a_damaged_file_is_refused_with_the_event(tmp_path: Path, text: str, code: str, words: list[str]) -> None:
    with refusal(code, *words):
        read(tmp_path, text)


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    text = json.dumps({"displayTimeUnit": "ms", "traceEvents": two_stages(), "name": "a"})
    for length in range(1, len(text)):
        with pytest.raises(HybridLabError) as caught:
            read(tmp_path, text[:length])
        assert caught.value.code == "cut-off", (length, caught.value)


def test_a_packed_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    whole = TORCH[0].read_bytes()
    for content in (whole[:-100], whole[:40], whole[:20] + b"\0" * 20 + whole[40:]):
        path = tmp_path / "rank0.json.gz"
        path.write_bytes(content)
        with refusal("cut-off", "rank0.json.gz", "gzip"):
            Timeline.from_chrome_trace(path)


def test_operations_of_a_device_that_overlap_are_named(tmp_path: Path) -> None:
    events = two_stages()
    events[1]["dur"] = 1500
    with refusal("overlapping-operations", "1B0", "1F0", "500.0 microseconds", "thread 1"):
        read(tmp_path, events)


def test_an_operation_that_is_missing_or_doubled_is_named(tmp_path: Path) -> None:
    with refusal("missing-backward", "stage 1", "microbatch 0", kind=InvalidSchedule):
        read(tmp_path, [each for each in two_stages() if each["name"] != "1B0"])
    with refusal("doubled-operation", "1F0", "2 times", "thread 1"):
        read(tmp_path, [*two_stages(), event("1F0", 9000, 5, 1)])
    with refusal("doubled-operation", "0F0", "thread 0", "thread 2", "replicas"):
        read(tmp_path, [*two_stages(), event("0F0", 0, 5, 2)])


def test_files_must_be_of_different_ranks_and_have_the_same_clock(tmp_path: Path) -> None:
    with refusal("doubled-rank", TORCH[1].name, "rank 1"):
        Timeline.from_chrome_trace([*TORCH, TORCH[1]])
    trace = events_of(TORCH[0])[0]
    del trace["baseTimeNanoseconds"]
    with refusal("no-clock", "trace.json", "baseTimeNanoseconds"):
        Timeline.from_chrome_trace([written(tmp_path, trace), *TORCH[1:]])


def test_a_rank_alone_lacks_the_stages_of_the_others() -> None:
    with refusal("missing-stage", "stage 1", kind=InvalidSchedule):
        Timeline.from_chrome_trace(TORCH[0])


@in_turn(
    "options, code, words",
    [
        ({"pattern": "(?P<kind>"}, "not-a-pattern", ["regular expression"]),
        ({"pattern": r"(?P<kind>\w)(?P<stage>\d)"}, "not-a-pattern", ["microbatch"]),
        ({"pattern": r"(?P<stage>\d)(?P<kind>.)(?P<microbatch>\d)|nothing"}, "", []),
        ({"pattern": r"(?P<stage>\d)(?P<kind>)(?P<microbatch>F)"}, "unknown-kind", ["'0F0'"]),
        ({"pattern": r"(?P<stage>\d)(?P<kind>F)(?P<microbatch>)"}, "not-a-whole-number", ["'0F0'"]),
        ({"pattern": 3}, "not-text", ["3"]),
        ({"pattern": WORDS}, "no-operations", ["'0F0'", "kind"]),
        ({"step": -1}, "too-small", ["step"]),
        ({"step": 1}, "out-of-range", ["1 step"]),
        ({"shift_clocks": "yes"}, "not-true-or-false", ["shift_clocks"]),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, Any], code: str, words: list[str]) -> None:
    if not code:
        assert read(tmp_path, two_stages(), **options).makespan == 8
        return
    with refusal(code, *words):
        read(tmp_path, two_stages(), **options)


def test_a_path_without_traces_is_refused(tmp_path: Path) -> None:
    for path, code in ((tmp_path, "not-found"), (tmp_path / "none.json", "not-found"), (str(tmp_path / "*.json"), "not-found")):
        with refusal(code):
            Timeline.from_chrome_trace(path)
    for wrong, code in (([], "empty"), (3, "not-a-list"), ([3], "not-a-list")):
        with refusal(code):
            Timeline.from_chrome_trace(wrong)  # type: ignore[arg-type]


# Large traces


def large_trace(folder: Path, operators: int) -> Path:
    """Write a trace of one rank with ``operators`` operators in each of its operations, as torch.profiler writes them."""
    details = '"args": {"External id": 1, "Record function id": 0, "Ev Idx": 34, "Sequence number": 12, "Fwd thread id": 0}}'
    path, now = folder / "large.json", 0
    with path.open("w", encoding="utf-8") as file:
        file.write('{"schemaVersion": 1, "distributedInfo": {"rank": 0}, "baseTimeNanoseconds": 1, "traceEvents": [\n')
        for microbatch in range(100):
            for kind in "FB":
                range_of = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "ts": now, "dur": 2 * operators + 10}
                file.write(json.dumps({"name": f"PP:0{kind}{microbatch}", **range_of}) + ",\n")
                for place in range(operators):
                    start = now + 10 + 2 * place
                    file.write(
                        f'{{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": {start}, "dur": 1, {details},\n'
                    )
                now += 2 * operators + 20
        file.write('{"ph": "M", "name": "end"}], "displayTimeUnit": "ms"}')
    return path


@pytest.mark.parametrize("operators", [50, pytest.param(520, marks=pytest.mark.slow)])
def test_a_large_trace_takes_little_more_memory_than_its_text(tmp_path: Path, operators: int) -> None:
    """The slow case has 20 MB: every event as a Python object would take ten times as much."""
    path = large_trace(tmp_path, operators)
    size = path.stat().st_size
    assert size > (20_000_000 if operators > 50 else 1_800_000)
    tracemalloc.start()
    try:
        timeline = Timeline.from_chrome_trace(path)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert timeline.schedule == Schedule("large", [[f"0{kind}{microbatch}" for microbatch in range(100) for kind in "FB"]])
    assert (timeline.end - timeline.start).tolist() == pytest.approx([2 * operators / 1000] * 200)
    assert most < 2.5 * size + 10_000_000
