"""Test the reader of traces: own traces come back exactly, torch's have the orders that ran, and bad ones are refused by name."""

import contextlib
import gzip
import json
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from command_line import hybridlab
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from strategies import Size, settings_of, sizes

from hybridlab import REGISTRY, Costs, HybridLabError, InvalidSchedule, Schedule, Timeline, build, hybrid_step, simulate
from hybridlab.errors import RunFailed
from hybridlab.schedule import Op
from hybridlab.step import Replicated, replicate

DATA = Path(__file__).resolve().parents[1] / "data"
TORCH = [DATA / f"torch_trace_rank{rank}.json.gz" for rank in range(4)]
CLASSES = DATA / "torch_schedules"
PAGE = Path(__file__).resolve().parents[2] / "book" / "your_trace"
WORDS = r"(?P<kind>\w+) of stage (?P<stage>\d+), microbatch (?P<microbatch>\d+)"
STEPS = {"F": "forward_step", "B": "backward_step"}
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


def slices_of(timeline: Timeline) -> Iterator[tuple[Op, int, dict[str, Any]]]:
    """Yield each operation with its device and its event, on a track of its device."""
    for op, device, start, end in zip(timeline.ops, timeline.device.tolist(), timeline.start, timeline.end, strict=True):
        yield op, device, event(str(op), 1000 * start, 1000 * (end - start), device)


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


@in_turn(
    "folder, size, options",
    [
        ("GPipe", ("gpipe", 3, 4), {"schedule": "gpipe"}),
        ("GPipe", ("gpipe", 3, 4), {"events": {"F": r"Forward \d+", "B": r"Backward \d+"}, "schedule": "gpipe"}),
        ("1F1B", ("1f1b", 4, 6), {"schedule": "1f1b"}),
        ("Interleaved1F1B", ("interleaved", 2, 4), {}),
        ("LoopedBFS", ("looped-bfs", 2, 4), {}),
        ("InterleavedZeroBubble", ("interleaved-zb", 2, 4), {}),
        ("ZBVZeroBubble", ("zb-v", 2, 4), {}),
        ("DualPipeV", ("dualpipe-v", 2, 4), {}),
    ],
)
def test_each_schedule_class_of_torch_is_read(folder: str, size: tuple[str, int, int], options: dict[str, Any]) -> None:
    """The stages slept 6 ms in each forward and 11 in each backward of a device; a sleep is never shorter."""
    timeline = Timeline.from_chrome_trace(sorted((CLASSES / folder).iterdir(), reverse=True), **options)
    assert str(timeline.schedule) == str(build(*size))
    assert timeline.schedule.name == options.get("schedule", folder)
    source = timeline.schedule.source
    assert (timeline.start >= np.where(source >= 0, timeline.end[source], 0) - 0.001).all()
    costs, predicted = Costs.from_timeline(timeline), simulate(timeline.schedule, Costs(forward=6, backward=11, weight_share=5 / 11))
    assert (costs.forward >= 6).all()
    assert timeline.makespan > predicted.makespan
    if folder == "DualPipeV":
        assert timeline.schedule.pairs.size == 6


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
    for path in [*TORCH, *PAGE.glob("*.gz"), *CLASSES.glob("*/*.gz")]:
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


def test_kernels_of_several_ranks_in_one_file_are_told_apart_or_refused(tmp_path: Path) -> None:
    """Both ranks number their kernels from 1. In a file of one rank, kernels have the number of the GPU in place of the process."""

    def merged(kernels_at: tuple[int, int]) -> Events:
        events: Events = []
        for number, each in enumerate(two_stages()):
            process, start = 70 + each["tid"], each["ts"]
            events.append(each | {"name": f"PP:{each['name']}", "pid": process, "cat": "user_annotation", "dur": 50})
            launch = {"pid": process, "cat": "cuda_runtime", "args": {"correlation": number // 2 * 2}}
            events.append(event("cudaLaunchKernel", start + 1, 1, each["tid"], **launch))
            kernel = {"cat": "kernel", "args": launch["args"], "pid": kernels_at[each["tid"]]}
            events.append(event("gemm", start, each["dur"], 7, **kernel))
        return events

    # operations 0F0 and 1F0 have the number 0, 1B0 and 0B0 have 2
    assert read(tmp_path, merged((70, 71)), name="run") == read(tmp_path, two_stages(), name="run")
    for kernels_at in ((0, 1), (0, 0)):
        with refusal("doubled-kernel", "trace.json", "0", "pid of the rank"):
            read(tmp_path, merged(kernels_at))


def test_all_kernels_of_a_cuda_graph_belong_to_its_launch(tmp_path: Path) -> None:
    events = []
    for number, name in enumerate(["0F0", "0B0"]):
        start = 100 * number
        events.append(event(f"PP:{name}", start, 50, cat="user_annotation"))
        events.append(event("cudaGraphLaunch", start + 1, 1, cat="cuda_runtime", args={"correlation": number}))
        events += [event("gemm", start + late, 10, 7, cat="kernel", args={"correlation": number}) for late in (40, 5, 20)]
    timeline = read(tmp_path, events)
    assert (1000 * (timeline.end - timeline.start)).tolist() == pytest.approx([45, 45])


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


@in_turn("name", REGISTRY)
def test_devices_follow_the_stages_and_no_order_of_files_or_processes(tmp_path: Path, name: str) -> None:
    """Device 0 has the process 9000, 1 has 9007, and so on, modulo 11."""
    costs = Costs(forward=[3, 4, 5, 9], backward=[7, 8, 6, 20], weight_share=0.5, p2p=1, overlap=0.5)
    wanted = simulate(build(name, 4, 8), costs)
    parts: dict[int, Events] = {}
    for _, device, each in slices_of(wanted):
        parts.setdefault(9000 + 7 * device % 11, []).append(each)
    merged = [each | {"pid": process, "tid": 1} for process, events in parts.items() for each in events]
    assert str(read(tmp_path, merged).schedule) == str(wanted.schedule)
    assert read(tmp_path, merged, name=name).start == pytest.approx(wanted.start)
    files = [written(tmp_path, events, f"rank{process}.json") for process, events in sorted(parts.items())]
    assert str(Timeline.from_chrome_trace(files).schedule) == str(wanted.schedule)


def test_the_costs_of_12_ranks_with_a_slow_last_stage_give_the_step_of_the_trace(tmp_path: Path) -> None:
    """Sorted as text, the files are rank0, rank1, rank10, rank11, rank2, and so on."""
    wanted = simulate(build("1f1b", 12, 16), Costs(forward=[3] * 11 + [7], backward=[5] * 11 + [9], p2p=1))
    for rank in range(12):
        written(tmp_path, [each for _, device, each in slices_of(wanted) if device == rank], f"rank{rank}.json")
    costs = Costs.from_timeline(Timeline.from_chrome_trace(tmp_path))
    assert costs.forward.tolist() == pytest.approx([3] * 11 + [7])
    assert simulate(build("1f1b", 12, 16), costs).makespan == pytest.approx(wanted.makespan)


def test_ranks_that_the_files_or_the_events_state_are_the_devices(tmp_path: Path) -> None:
    """Rank 0 runs the last stage here. Costs per device would go to other stages in other schedules, so they are refused."""
    turned = [[each | {"tid": 0} for each in two_stages() if each["tid"] == track] for track in (1, 0)]
    for rank, events in enumerate(turned):
        written(tmp_path, {"traceEvents": events, "distributedInfo": {"rank": rank}}, f"{1 - rank}.json")
    named = [each | {"name": f"gpu{rank} {each['name']}"} for rank, events in enumerate(turned) for each in events]
    pattern = r"gpu(?P<device>\d+) (?P<stage>\d+)(?P<kind>[FB])(?P<microbatch>\d+)"
    for timeline in (Timeline.from_chrome_trace(tmp_path), read(tmp_path / "..", named, pattern=pattern)):
        assert timeline.schedule.device_of == (1, 0)
        with refusal("other-placement", "per='stage'"):
            Costs.from_timeline(timeline)
        assert Costs.from_timeline(timeline, per="stage").backward.tolist() == [2, 2]


def test_a_merged_file_with_the_rank_of_its_first_part_has_all_its_processes(tmp_path: Path) -> None:
    processes = [each | {"pid": 9 - each["tid"], "tid": 0} for each in two_stages()]
    again = read(tmp_path, {"traceEvents": processes, "distributedInfo": {"rank": 0}}, name="run")
    assert again == read(tmp_path, two_stages(), name="run")


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
    with refusal("several-steps", "3 steps", "step 0 to 2"):
        read(tmp_path, events)
    with refusal("out-of-range", "3 steps"):
        read(tmp_path, events, step=3)
    own = simulate(build("1f1b", 2, 2), Costs(forward=1, backward=2)).to_chrome_trace()
    with refusal("out-of-range", "1 step"):
        read(tmp_path, own, step=1)


def test_the_steps_before_a_gap_are_read(tmp_path: Path) -> None:
    """After a gap, nothing says which step of one rank belongs to which step of another."""
    events = [each | {"ts": each["ts"] + 10_000 * step} for step in range(3) for each in two_stages()]
    for gap, lacks in (
        (6, "step 1 has 0F0 on thread 0 and lacks 1B0 on thread 1"),
        (3, "step 0 has 0F0 on thread 0 and lacks 0B0 on thread 0"),
    ):
        found = events[:gap] + events[gap + 1 :]
        for step in range(3):
            if step < gap // 4:
                assert read(tmp_path, found, step=step) == read(tmp_path, two_stages())
                continue
            with refusal("missing-operation", f"step {step} ", lacks):
                read(tmp_path, found, step=step)
    with refusal("several-steps", "3 steps", "step 1 has 0F0 on thread 0 and lacks 1B0 on thread 1", "choose step 0"):
        read(tmp_path, events[:6] + events[7:])


@in_turn("name", ["1f1b", "interleaved", "zb-v", "dualpipe-v"])
@in_turn("named", [False, True])
def test_the_whole_steps_of_a_killed_run_are_read(tmp_path: Path, name: str, named: bool) -> None:
    """The run is killed at several moments of its third step: operations that have not ended are not in the trace."""
    wanted = simulate(build(name, 2, 4), Costs(forward=[3, 4], backward=[7, 8], p2p=1, overlap=0.5))
    length = 1000 * wanted.makespan + 9000
    names = STEPS | {"I": "dgrad", "W": "wgrad"}
    one = renamed(wanted, names) if named else [each for _, _, each in slices_of(wanted)]
    options: dict[str, Any] = {"events": names, "schedule": wanted.schedule} if named else {}
    for share in (0.2, 0.5, 0.9):
        events = [each | {"ts": each["ts"] + step * length} for step in range(3) for each in one]
        events = [each for each in events if each["ts"] + each["dur"] < (2 + share) * length - 9000]
        for step in range(2):
            again = read(tmp_path, events, step=step, **options)
            assert again.schedule.turns == wanted.schedule.turns
            assert again.start == pytest.approx(wanted.start)
        with refusal("several-steps", "3 steps, but step 2 has", "lacks", "step 0 or 1"):
            read(tmp_path, events, **options)
        with refusal("missing-operation", "step 2 ", "step 0 or 1"):
            read(tmp_path, events, step=2, **options)
    if named:
        with pytest.raises(HybridLabError, match=r"stopped in a later step, give the orders"):
            read(tmp_path, events, events=names, schedule=name)


# Traces of several pipelines


def test_one_of_several_pipelines_is_chosen(tmp_path: Path) -> None:
    """The process, or a group of the pattern or of the names of events, says whose an event is. Process 9 comes before process 10."""
    first, second = (simulate(build("1f1b", 2, 4), Costs(forward=forward, backward=4, p2p=1)) for forward in (1, 3))
    both = [
        (process, op, device, each | {"pid": process}) for process, one in ((10, second), (9, first)) for op, device, each in slices_of(one)
    ]
    bare = [each for *_, each in both]
    kinds = [each | {"name": STEPS[op.kind]} for _, op, _, each in both]
    said = [each | {"name": f"dp{process} gpu{device} {each['name']}", "pid": 0} for process, _, device, each in both]
    files = [written(tmp_path, [each for *_, device, each in both if device == rank], f"{rank}.json") for rank in (0, 1)]
    pattern = r"dp(?P<replica>\d+) gpu(?P<device>\d+) (?P<stage>\d+)(?P<kind>[FB])(?P<microbatch>\d+)"
    in_events = {kind: rf"dp(?P<replica>\d+) gpu(?P<device>\d+) \d+{kind}\d+" for kind in "FB"}
    ways: list[tuple[Events, dict[str, Any]]] = [
        (bare, {}),
        (kinds, {"events": STEPS, "schedule": "1f1b"}),
        (said, {"pattern": pattern}),
        (said, {"events": in_events, "schedule": "1f1b"}),
    ]
    for events, options in ways:
        for replica, wanted in enumerate((first, second)):
            again = read(tmp_path, events, replica=replica, **options)
            assert str(again.schedule) == str(wanted.schedule)
            assert again.start == pytest.approx(wanted.start)
        with refusal("out-of-range", "2 pipelines", "9, ", "10"):
            read(tmp_path, events, replica=2, **options)
    for events, options in (ways[0], ways[2]):
        with refusal("several-replicas", "9", "10", "replica 0 or 1"):
            read(tmp_path, events, **options)
    with refusal("no-replicas", "files of one pipeline", "(?P<replica>...)"):
        Timeline.from_chrome_trace(files, replica=0)


def test_what_is_no_pipeline_is_not_read_as_one(tmp_path: Path) -> None:
    """Each process is a device here."""
    processes = [each | {"pid": each["tid"], "tid": 0} for each in two_stages()]
    with refusal("no-replicas", "same stages", "leave replica out"):
        read(tmp_path, processes, replica=0)
    with refusal("no-replicas", "one thread"):
        read(tmp_path, [each | {"name": STEPS[each["name"][1]]} for each in processes], events=STEPS, schedule="1f1b", replica=0)
    assert read(tmp_path, two_stages(), replica=0) == read(tmp_path, two_stages())
    with refusal("no-replicas", "'1F0'", "matched nothing"):
        read(tmp_path, two_stages(), pattern=r"(?=(?P<replica>0F)?)(?P<stage>\d)(?P<kind>[FB])(?P<microbatch>\d)", replica=0)


def test_one_pipeline_of_an_own_trace_is_chosen(tmp_path: Path) -> None:
    costs = Costs(forward=1 / 3, backward=0.7, p2p=0.1)
    step = hybrid_step(build("1f1b", 3, 6), costs, 2, ring_step=0.7)
    for replica in range(2):
        again = read(tmp_path, step.timeline.to_chrome_trace(), replica=replica)
        rows = step.timeline.device // 3 == replica
        assert again == Timeline(build("1f1b", 3, 6), step.timeline.start[rows], step.timeline.end[rows])
    with refusal("out-of-range", "2 pipelines"):
        read(tmp_path, step.timeline.to_chrome_trace(), replica=2)


@in_turn("replicas", [1, 2])
def test_the_command_reads_what_a_failed_run_has_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replicas: int) -> None:
    """The run fails in its second step. The other job's order is given as a file."""
    schedule = build("1f1b", 2, 4)
    timeline = simulate(replicate(schedule, replicas), Costs(forward=1, backward=2, p2p=1, unit="s"))
    rows = [
        row | {"step": step, "activations": None, **{key: row[key] + 30 * step for key in ("start", "end")}}
        for step in range(2)
        for row in timeline.to_rows()
    ]

    def fail(*_: object, **__: object) -> None:
        why = RunFailed("the process of device 1 ended")
        why.measured = sorted(rows[:-3], key=lambda row: row["start"])
        raise why

    monkeypatch.setattr("hybridlab.commands.run.run", fail)
    trace, orders = tmp_path / "failed.json", tmp_path / "orders.csv"
    assert "ended" in hybridlab("run", "--devices", 2, "--microbatches", 4, "--replicas", replicas, "--trace", trace).stderr
    for replica in range(replicas):
        chosen = ["--replica", replica, "--csv", orders]
        done = hybridlab("trace", trace, "--step", 0, *chosen)
        assert f"makespan {1000 * timeline.makespan:.6g} ms" in done.stdout, done.output
        assert orders.read_text(encoding="utf-8") == schedule.to_csv()
    events = ["--events", r"F=\dF\d", "--events", r"B=\dB\d", "--schedule", orders]
    assert hybridlab("trace", trace, "--step", 0, *chosen[:2], *events).stdout == done.stdout.replace("failed", "orders")
    assert "leave --chunks out" in hybridlab("trace", trace, *events, "--chunks", 1).stderr


# Traces whose events say only the kind of an operation


def renamed(timeline: Timeline, names: dict[str, str], **more: Any) -> Events:
    """Return the events of a timeline with a name for each kind, in processes whose numbers state no order."""
    return [each | {"name": names[op.kind], "pid": 50 - 3 * device, **more} for op, device, each in slices_of(timeline)]


@in_turn("name", [name for name, family in REGISTRY.items() if family.copies == 1])
def test_rank_and_running_order_say_the_operation(tmp_path: Path, name: str) -> None:
    names = {"F": "forward_step", "B": "backward_step", "I": "dgrad", "W": "wgrad"}
    schedule = build(name, 4, 8)
    wanted = simulate(schedule, Costs(forward=[3, 4, 5, 9], backward=[7, 8, 6, 20], p2p=1, overlap=0.5))
    events = {str(kind): names[kind] for kind in sorted({op.kind for op in schedule.ops} | {"F"})}
    asked: list[Any] = [name, (name, schedule.chunks), schedule]
    for each in asked:
        again = read(tmp_path, renamed(wanted, names), events=events, schedule=each)
        assert again.schedule == schedule
        assert again.start == pytest.approx(wanted.start)


@in_turn("name", ["chimera", "dualpipe"])
def test_with_two_copies_the_ranks_must_be_stated(tmp_path: Path, name: str) -> None:
    names = STEPS | {"I": "dgrad", "W": "wgrad"}
    wanted = simulate(build(name, 4, 8), Costs(forward=3, backward=7, overlap=0.5))
    with refusal("no-ranks", "two copies", "distributedInfo.rank"):
        read(tmp_path, renamed(wanted, names), events=names, schedule=name)
    stated = [each | {"name": f"gpu {device} {names[op.kind]}"} for op, device, each in slices_of(wanted)]
    events = {kind: rf"gpu (?P<device>\d+) {word}" for kind, word in names.items()}
    assert read(tmp_path, stated, events=events, schedule=name).schedule == wanted.schedule


def test_names_are_whole_names_and_inner_events_do_not_count(tmp_path: Path) -> None:
    """Megatron-LM calls the function forward_step of the user in its own function forward_step; a backward can compute a forward again."""
    wanted = simulate(build("1f1b", 2, 4), Costs(forward=1, backward=2))
    outer = renamed(wanted, STEPS, cat="python_function")
    inner = [each | {"name": "forward_step", "ts": each["ts"] + 10, "dur": 20} for each in outer]
    others = [each | {"name": f"{each['name']}_func", "ts": each["ts"] + 1e6} for each in outer]
    calls = [each | {"name": f"megatron/core/schedules.py(243): {each['name']}"} for each in outer]
    for events in (outer, outer + inner + others, calls + inner):
        assert read(tmp_path, events, events=STEPS, schedule="1f1b").schedule == wanted.schedule
    mixed = [each | {"name": "fwd"} if place % 2 and each["name"] == "forward_step" else each for place, each in enumerate(outer)]
    several = {"F": "forward_step|fwd", "B": "backward_step"}
    assert read(tmp_path, mixed, events=several, schedule="1f1b").schedule == wanted.schedule


@in_turn("size", [("1f1b", 2, 4), ("gpipe", 3, 2), ("interleaved", 2, 4)])
def test_several_steps_of_named_events_are_told_apart(tmp_path: Path, size: tuple[str, int, int]) -> None:
    wanted = simulate(build(*size), Costs(forward=1, backward=2))
    first = renamed(wanted, STEPS)
    events = [each | {"ts": each["ts"] + 10_000_000 * step} for step in range(3) for each in first]
    for schedule in (size[0], wanted.schedule):
        assert read(tmp_path, events, events=STEPS, schedule=schedule, step=2).start == pytest.approx(wanted.start)
    with refusal("several-steps", "3 steps"):
        read(tmp_path, events, events=STEPS, schedule=size[0])


def test_the_first_event_that_contradicts_the_schedule_is_named(tmp_path: Path) -> None:
    wanted = simulate(build("1f1b", 2, 4), Costs(forward=1, backward=2))  # rank 50 runs F F B F B F B B, rank 47 runs F B F B F B F B
    good = renamed(wanted, STEPS)

    def no(events: Events, schedule: Any, code: str, *words: object, **more: Any) -> None:
        with refusal(code, *words):
            read(tmp_path, events, events=STEPS, schedule=schedule, **more)

    no(good, "gpipe", "contradicts-schedule", "event 1 of process 47", "'backward_step'", "1F1", "forward of microbatch 1")
    no(good, build("1f1b", 2, 5), "contradicts-schedule", "process", "5 microbatches")
    no(good, build("1f1b", 4, 4), "wrong-size", "2 ranks", "4 devices", "process 47")
    no(good[:-1], "1f1b", "contradicts-schedule", "process 47 ends after 7 events", "1B3")
    no([*good[:-2], good[-1]], "1f1b", "wrong-size", "process 47 has 3 forwards", "4")
    no(good, ("interleaved", 3), "wrong-size", "4 forwards", "3 chunks")
    no(good, "hanayo", "contradicts-schedule", "hanayo")
    no(good, "zb-h1", "contradicts-schedule", "'backward_step'", "1I0")
    no(good, "1f1b", "no-ranks", "shift_clocks", shift_clocks=True)
    files = [written(tmp_path, [each for each in good if each["pid"] == pid], f"{pid}.json") for pid in (50, 47, 44)]
    with refusal("no-operations", "44.json", "'forward_step'"):
        Timeline.from_chrome_trace(files, events=STEPS, schedule="gpipe")


def operators_of(timeline: Timeline, late: float) -> Events:
    """Return the events of torch.profiler without ranges: backwards run on a thread of their own. Kernels start ``late``, if not 0.

    Each operation ends 40 microseconds early, so that there is time for its messages.
    """
    crosses = timeline.schedule.crosses
    sends = set(timeline.schedule.source[crosses].tolist())
    events: Events = []
    for row, (op, device, each) in enumerate(slices_of(timeline)):
        process, start, length = 50 - 3 * device, each["ts"], each["dur"] - 40
        here: dict[str, Any] = {"pid": process, "tid": 2 if op.kind == "B" else 1, "cat": "cpu_op"}
        message = here | {"tid": 1}
        events += [event("c10d::recv_", start - 10, 5, **message)] * bool(crosses[row])
        events += [event("c10d::send", start + length + 5, 5, **message)] * (row in sends)
        # the second operator is within the first, which is the longer one; the third ends the operation
        parts = ((start, 0.4 * length), (start + 0.1 * length, 0.1 * length), (start + 0.5 * length, 0.5 * length))
        for begin, part in parts:
            operator = event("autograd::engine::evaluate_function: A" if op.kind == "B" else "aten::mm", begin, part, **here)
            arrow = {"ph": "s", "cat": "fwdbwd", "ts": begin, "name": "fwdbwd", "pid": process, "tid": here["tid"]}
            events += [operator, *([arrow] if op.kind == "F" else [])]
            if op.kind == "B":  # the forward is computed again, and a message is sent, within the backward
                again = {"ts": begin + 1, "pid": process, "tid": 2}
                events += [event("aten::mm", 0, 2, cat="cpu_op") | again, arrow | again, event("c10d::send", 0, 2, cat="cpu_op") | again]
            if late:
                arguments = {"correlation": len(events)}
                events.append(event("cudaLaunchKernel", begin, 1, here["tid"], pid=process, cat="cuda_runtime", args=arguments))
                events.append(event("gemm", begin + late, part, 7, pid=process, cat="kernel", args=arguments))
        events.append(event("aten::no_gradient", start + length + 1, 3, **here))
    return events


@in_turn("size", [("1f1b", 3, 4), ("gpipe", 2, 4), ("interleaved", 2, 4)])
@in_turn("late", [0, 300])
def test_operators_between_messages_are_the_operations_of_a_schedule(tmp_path: Path, size: tuple[str, int, int], late: float) -> None:
    wanted = simulate(build(*size), Costs(forward=[3, 4, 5][: size[1]], backward=[7, 8, 6][: size[1]], p2p=1))
    events = operators_of(wanted, late)
    again = read(tmp_path, events, schedule=size[0])
    assert again.schedule == wanted.schedule
    assert (again.start, again.end) == (pytest.approx(wanted.start), pytest.approx(wanted.end - 0.04))
    later = [each | {"ts": each["ts"] + 1e6} for each in events]
    if not late:
        assert read(tmp_path, events + later, schedule=size[0], step=1).start == pytest.approx(wanted.start)


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
        ("SQLite format 3\0\1\2", "other-format", ["SQLite", "nsys2json.py trace.json -o trace.json"]),
        ("\n\14\10\1\120\1" + 30 * "\0", "other-format", ["Perfetto", "traceconv json trace.json trace.json"]),
        ("\nstage,forward\n0,10", "not-a-trace", ["traceEvents"]),
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


def test_only_names_that_can_be_operations_are_listed(tmp_path: Path) -> None:
    left_out = [
        *(
            event(name, 0, 1, cat="user_annotation")
            for name in ("gloo:send", "nccl:all_reduce", "ProfilerStep#3", "Optimizer.step#SGD.step")
        ),
        *(event("hidden", 0, 1, cat=category) for category in ("gpu_user_annotation", "gpu_memcpy", "cuda_sync", "Trace", "overhead")),
        *(event("hidden", 0, 1, ph=phase, id=1) for phase in "bensfiMC"),
        event("aten::mm", 0, 1, cat="cpu_op"),
    ]
    listed = [*(event("data", 0, 1) for _ in range(9)), *(event(f"fwd {number}", 0, 1) for number in range(30)), event("bwd 7", 0, 1)]
    listed.append(event("a/b.py(7): train_backward", 0, 1, cat="python_function"))
    with refusal("no-operations", "operations: 'fwd 0', 'bwd 7', 'train_backward', 'data'. Please", 'schedule="1f1b"'):
        read(tmp_path, left_out + listed)
    with refusal("no-operations", "none", "the schedule alone"):
        read(tmp_path, left_out)
    with refusal("no-operations", "forward operator of torch"):
        read(tmp_path, left_out, schedule="1f1b")


def test_files_of_other_profilers_are_named_with_the_command_that_converts_them(tmp_path: Path) -> None:
    for name, word in (("a.nsys-rep", "nsys export --type sqlite a.nsys-rep"), ("a.pftrace", "traceconv json a.pftrace trace.json")):
        (tmp_path / name).write_bytes(bytes(range(128, 256)))
        for path in (tmp_path / name, tmp_path):
            with refusal("other-format", word):
                Timeline.from_chrome_trace(path)
        (tmp_path / name).unlink()


def test_no_value_in_an_event_ends_in_a_raw_error(tmp_path: Path) -> None:
    """Each value of three events is replaced by junk in turn. What is not needed may be wrong; all else ends in a sentence."""
    arguments = {"correlation": 3}
    launch, kernel = event("cudaLaunchKernel", 0, 1, cat="cuda_runtime", args=arguments), event("gemm", 0, 9, cat="kernel", args=arguments)
    good = [event("PP:0F0", 0, 5, cat="user_annotation"), launch, kernel, event("PP:0B0", 5, 5, cat="user_annotation")]
    about = {"distributedInfo": {"rank": 0}, "baseTimeNanoseconds": 1, "otherData": {}}
    for junk in (None, True, -1, 1.5, "", [1], {"rank": [1]}, {"correlation": [1]}, {"hybridlab": 3}):
        traces = [{**about, "traceEvents": [*good[:at], good[at] | {key: junk}, *good[at + 1 :]]} for at in range(3) for key in good[1]]
        traces += [about | {key: junk, "traceEvents": good} for key in about]
        for trace in traces:
            with contextlib.suppress(HybridLabError):
                assert read(tmp_path, trace).makespan >= 0


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
    with refusal("several-steps", "2 steps, but step 1 has 1F0 on thread 1 and lacks 0F0 on thread 0", "choose step 0"):
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
        ({"events": STEPS}, "no-schedule", ['schedule="1f1b"']),
        ({"schedule": "1f1b"}, "two-ways", ["'0F0'", "leave schedule out"]),
        ({"pattern": WORDS, "schedule": "1f1b"}, "two-ways", ["pattern"]),
        ({"events": STEPS, "pattern": WORDS, "schedule": "1f1b"}, "two-ways", ["pattern", "events"]),
        ({"events": STEPS, "schedule": "1f1"}, "unknown-name", ["1f1b"]),
        ({"events": STEPS, "schedule": 3}, "wrong-type", ["3"]),
        ({"events": STEPS, "schedule": "1f1b"}, "no-operations", ["'forward_step'", "'0F0'"]),
        ({"events": "forward_step", "schedule": "1f1b"}, "wrong-type", ["forward_step"]),
        ({"events": {"F": "("}, "schedule": "1f1b"}, "not-a-pattern", ["'('"]),
        ({"events": {"F": 3}, "schedule": "1f1b"}, "not-text", ["3"]),
        ({"events": {"forward": "f"}, "schedule": "1f1b"}, "unknown-kind", ["'forward'"]),
        ({"events": {"F": "f", "W": "w"}, "schedule": "1f1b"}, "missing-kind", ["F, W"]),
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
    for text in (json.dumps(two_stages()), "[" + 9000 * "3,", 9000 * "a", "a\0b"):
        with refusal("not-a-path"):
            Timeline.from_chrome_trace(text)
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
