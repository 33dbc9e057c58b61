"""Make traces of torch.profiler: of torch's own schedule classes for `tests/data`, and one of 1F1B for the page *Traces of your own job*.

`.venv/bin/python tests/engines/make_torch_trace.py` starts processes, which talk over gloo, and writes the files. It needs torch. Names
such as `ZBVZeroBubble` after it make only these. The stages sleep for most of their time, so that two cores are enough for four ranks. Each
rank records a few steps, and the shortest is kept. Events that say nothing about the schedule, and names of machines, paths and users, are
left out of the files.
"""

import gzip
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hybridlab import Costs, Schedule, Timeline, build, schedule_for

ROOT = Path(__file__).resolve().parents[2]
STEPS = 6
CLASS = "tests/data/torch_schedules/{}/rank{}.json.gz"


class Run(NamedTuple):
    """One recording: the class of torch, or "" for an order of ours in torch's runtime, its sizes, its files, and how they are read."""

    torch_class: str
    ours: str
    ranks: int
    chunks: int
    microbatches: int
    written: str
    read: dict[str, Any]

    @property
    def name(self) -> str:
        return self.torch_class or self.ours


RUNS = [
    Run("", "zb-v", 4, 2, 8, "tests/data/torch_trace_rank{1}.json.gz", {}),
    Run("", "1f1b", 4, 1, 8, "book/your_trace/rank{1}.json.gz", {}),
    Run("", "better", 4, 1, 8, "book/your_trace/better/rank{1}.json.gz", {}),  # what the page makes for the times of the run above
    Run("GPipe", "gpipe", 3, 1, 4, CLASS, {"schedule": "gpipe"}),
    Run("1F1B", "1f1b", 4, 1, 6, CLASS, {"schedule": "1f1b"}),
    Run("Interleaved1F1B", "interleaved", 2, 2, 4, CLASS, {}),
    Run("LoopedBFS", "looped-bfs", 2, 2, 4, CLASS, {}),
    Run("InterleavedZeroBubble", "interleaved-zb", 2, 2, 4, CLASS, {}),
    Run("ZBVZeroBubble", "zb-v", 2, 2, 4, CLASS, {}),
    Run("DualPipeV", "dualpipe-v", 2, 2, 4, CLASS, {}),
]
KEPT = {"user_annotation", "cpu_op"}
WIDTH, ROWS = 16, 4  # of a stage's layers, and rows of a microbatch
TIMES = {"forward": 6, "input gradient": 6, "weight gradient": 5}  # ms of a device; the last stage of 1F1B takes half as long again


def stage_of(scale: float) -> Any:
    """Return a stage whose forward, input gradient and weight gradient take ``scale`` times the times above."""
    import torch
    from torch.nn.functional import linear

    forward, inputs, weights = (scale * each / 1000 for each in TIMES.values())

    class Slow(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, values: Any, now: float, later: float) -> Any:
            ctx.later = later
            time.sleep(now)
            return values.view_as(values)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            time.sleep(ctx.later)
            return gradient, None, None

    class Stage(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Parameter(torch.randn(WIDTH, WIDTH) / WIDTH)
            self.second = torch.nn.Parameter(torch.randn(WIDTH, WIDTH) / WIDTH)

        def forward(self, values: Any) -> Any:
            middle = Slow.apply(linear(values, self.first), forward, inputs)
            return linear(middle, Slow.apply(self.second, 0.0, weights))

    return Stage()


def run_rank(rank: int, run: Run, orders: str, folder: str) -> None:
    """Train two steps to warm up, and record the next ones."""
    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage
    from torch.profiler import ProfilerActivity, profile

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=run.ranks)
    order = Schedule.parse(orders)
    mine = [stage for stage in range(order.stages) if order.device_of[stage] == rank]
    last = order.stages - 1
    scales = [1.5 if run.ours in ("1f1b", "better") and stage == last else 1 / order.chunks for stage in mine]
    stages = [PipelineStage(stage_of(scale), stage, last + 1, torch.device("cpu")) for scale, stage in zip(scales, mine, strict=True)]
    runtime = runtime_of(run, stages, order.to_csv(), Path(folder) / f"orders{rank}.csv")
    batch = torch.randn(run.microbatches * ROWS, WIDTH)
    inputs, target = (batch,) if 0 in mine else (), {"target": batch} if last in mine else {}
    for _ in range(2):
        runtime.step(*inputs, **target)
    for step in range(STEPS):
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            torch.ones(1).add(1)  # the first operator that a profiler records takes longer
            dist.barrier()
            runtime.step(*inputs, **target)
        place = Path(folder) / f"step{step}"
        place.mkdir(exist_ok=True)
        profiler.export_chrome_trace(str(place / f"rank{rank}.json"))
    dist.destroy_process_group()


def order_of(run: Run) -> Schedule:
    """Return the order of a run: a schedule of the registry, or the one that the page makes for the times of its trace."""
    if run.ours != "better":
        return build(run.ours, run.ranks, run.microbatches, run.chunks)
    costs = Costs.from_timeline(Timeline.from_chrome_trace(ROOT / "book/your_trace"))
    return schedule_for(costs, microbatches=run.microbatches, memory=run.ranks)


def runtime_of(run: Run, stages: list[Any], orders: str, file: Path) -> Any:
    """Return torch's schedule class for these stages, or torch's runtime with the orders of a CSV text, which is written to ``file``."""
    from torch.distributed.pipelining.schedules import PipelineScheduleSingle, _PipelineScheduleRuntime, get_schedule_class
    from torch.nn.functional import mse_loss

    if run.torch_class:
        chosen = get_schedule_class(run.torch_class)
        single = issubclass(chosen, PipelineScheduleSingle)
        return chosen(stages[0] if single else stages, run.microbatches, loss_fn=mse_loss)
    runtime = _PipelineScheduleRuntime(stages, run.microbatches, loss_fn=mse_loss)
    file.write_text(orders, encoding="utf-8")
    runtime._load_csv(str(file), format="compute_only")
    return runtime


def stripped(trace: dict[str, Any], with_arrows: bool) -> dict[str, Any]:
    """Return a trace with the operations alone, and with nothing about the machine that made it.

    ``with_arrows`` keeps the arrows from forward operators to their backward, and the operators where they begin.
    """
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X" and event.get("cat") in KEPT]
    arrows = [event for event in trace["traceEvents"] if with_arrows and event.get("ph") == "s" and event.get("cat") == "fwdbwd"]
    begins = {(event["tid"], event["ts"]) for event in arrows}
    chosen = list(outermost([event for event in events if not event["name"].startswith("gloo:")], begins)) + arrows
    threads = {tid: 1 + place for place, tid in enumerate(dict.fromkeys(event["tid"] for event in chosen))}
    keys = ("ph", "cat", "name", "ts", "dur")
    about = trace["distributedInfo"]
    return {
        "schemaVersion": trace["schemaVersion"],
        "distributedInfo": {name: about[name] for name in ("backend", "rank", "world_size")},
        "displayTimeUnit": trace["displayTimeUnit"],
        "baseTimeNanoseconds": trace["baseTimeNanoseconds"],
        "traceEvents": [
            {key: event[key] for key in keys if key in event} | {"pid": about["rank"], "tid": threads[event["tid"]]} for event in chosen
        ],
    }


def outermost(events: list[dict[str, Any]], kept: set[tuple[int, float]]) -> Iterator[dict[str, Any]]:
    """Yield the ranges, the operators that no other operator has called, and those that begin on a thread at a time in ``kept``."""
    ends: dict[Any, float] = {}
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        if event["cat"] == "cpu_op":
            if event["ts"] < ends.get(event["tid"], 0):
                if (event["tid"], event["ts"]) in kept:
                    yield event
                continue
            ends[event["tid"]] = event["ts"] + event["dur"]
        yield event


def main() -> None:
    """Run the schedules that the command line names, or all, and write the stripped files of the shortest steps."""
    import torch.multiprocessing as mp

    for run in [run for run in RUNS if not sys.argv[1:] or run.name in sys.argv[1:]]:
        with tempfile.TemporaryDirectory() as folder:
            mp.start_processes(run_rank, args=(run, str(order_of(run)), folder), nprocs=run.ranks, start_method="spawn")
            steps = [Path(folder) / f"step{step}" for step in range(STEPS)]
            best = min(steps, key=lambda step: Timeline.from_chrome_trace(step, **run.read).makespan)
            for rank in range(run.ranks):
                trace = json.loads((best / f"rank{rank}.json").read_text(encoding="utf-8"))
                text = json.dumps(stripped(trace, "schedule" in run.read), separators=(",", ":"))
                path = ROOT / run.written.format(run.torch_class, rank)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
