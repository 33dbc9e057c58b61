"""Make traces of torch.profiler: a training step of ZB-V for `tests/data`, and one of 1F1B for the page *Traces of your own job*.

`.venv/bin/python tests/engines/make_torch_trace.py` starts four processes, which talk over gloo, and writes the files. It needs torch. The
stages sleep for most of their time, so that two cores are enough for four ranks. Each rank records a few steps, and the shortest is kept.
Events that say nothing about the schedule, and names of machines, paths and users, are left out of the files.
"""

import gzip
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hybridlab import Timeline, build

ROOT = Path(__file__).resolve().parents[2]
RANKS, MICROBATCHES, STEPS = 4, 8, 6
WRITTEN = {"zb-v": "tests/data/torch_trace_rank{}.json.gz", "1f1b": "book/your_trace/rank{}.json.gz"}
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


def run_rank(rank: int, name: str, folder: str) -> None:
    """Train two steps to warm up, and record the next ones."""
    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
    from torch.profiler import ProfilerActivity, profile

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS)
    order = build(name, RANKS, MICROBATCHES)
    mine = [stage for stage in range(order.stages) if order.device_of[stage] == rank]
    last = order.stages - 1
    scales = [1.5 if name == "1f1b" and stage == last else 1 / order.chunks for stage in mine]
    stages = [PipelineStage(stage_of(scale), stage, last + 1, torch.device("cpu")) for scale, stage in zip(scales, mine, strict=True)]
    runtime = _PipelineScheduleRuntime(stages, MICROBATCHES, loss_fn=torch.nn.functional.mse_loss)
    orders = Path(folder) / f"orders{rank}.csv"
    orders.write_text(order.to_csv(), encoding="utf-8")
    runtime._load_csv(str(orders), format="compute_only")
    batch = torch.randn(MICROBATCHES * ROWS, WIDTH)
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


def stripped(trace: dict[str, Any]) -> dict[str, Any]:
    """Return a trace with the operations alone, and with nothing about the machine that made it."""
    chosen = list(outermost([event for event in trace["traceEvents"] if event.get("ph") == "X" and event.get("cat") in KEPT]))
    threads = {tid: 1 + place for place, tid in enumerate(dict.fromkeys(event["tid"] for event in chosen))}
    keys = ("ph", "cat", "name", "ts", "dur")
    about = trace["distributedInfo"]
    return {
        "schemaVersion": trace["schemaVersion"],
        "distributedInfo": {name: about[name] for name in ("backend", "rank", "world_size")},
        "displayTimeUnit": trace["displayTimeUnit"],
        "baseTimeNanoseconds": trace["baseTimeNanoseconds"],
        "traceEvents": [{key: event[key] for key in keys} | {"pid": about["rank"], "tid": threads[event["tid"]]} for event in chosen],
    }


def outermost(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the ranges, and the operators that no other operator has called."""
    ends: dict[Any, float] = {}
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        if event["cat"] == "cpu_op":
            if event["ts"] < ends.get(event["tid"], 0):
                continue
            ends[event["tid"]] = event["ts"] + event["dur"]
        yield event


def main() -> None:
    """Run both schedules, and write the stripped files of the shortest steps."""
    import torch.multiprocessing as mp

    for name, written in WRITTEN.items():
        with tempfile.TemporaryDirectory() as folder:
            mp.start_processes(run_rank, args=(name, folder), nprocs=RANKS, start_method="spawn")
            best = min((Path(folder) / f"step{step}" for step in range(STEPS)), key=lambda step: Timeline.from_chrome_trace(step).makespan)
            for rank in range(RANKS):
                trace = json.loads((best / f"rank{rank}.json").read_text(encoding="utf-8"))
                text = json.dumps(stripped(trace), separators=(",", ":"))
                path = ROOT / written.format(rank)
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
