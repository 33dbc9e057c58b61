"""Make the traces of torch.profiler in `tests/data`: one training step of ZB-V on four processes, which talk over gloo.

`.venv/bin/python tests/make_torch_trace.py` starts the processes and writes `tests/data/torch_trace_rank0.json.gz` and so on. It needs
torch. Events that say nothing about the schedule, and names of machines, paths and users, are left out of the files.
"""

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

from hybridlab import build

DATA = Path(__file__).resolve().parent / "data"
SCHEDULE, RANKS, MICROBATCHES = "zb-v", 4, 8
KEPT = {"user_annotation", "cpu_op"}
WIDTH, ROWS = 192, 64  # of a stage's layers, and rows of a microbatch


def run_rank(rank: int, folder: str) -> None:
    """Train one step to warm up, and record the next one."""
    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
    from torch.profiler import ProfilerActivity, profile

    torch.set_num_threads(1)
    torch.manual_seed(rank)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS)
    order = build(SCHEDULE, RANKS, MICROBATCHES)
    mine = [stage for stage in range(order.stages) if order.device_of[stage] == rank]
    layers = [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH)) for _ in mine]
    stages = [PipelineStage(layer, stage, order.stages, torch.device("cpu")) for layer, stage in zip(layers, mine, strict=True)]
    runtime = _PipelineScheduleRuntime(stages, MICROBATCHES, loss_fn=torch.nn.functional.mse_loss)
    csv = Path(folder) / f"orders{rank}.csv"
    csv.write_text(order.to_csv(), encoding="utf-8")
    runtime._load_csv(str(csv), format="compute_only")
    batch = torch.randn(MICROBATCHES * ROWS, WIDTH)

    def step() -> None:
        inputs = (batch,) if 0 in mine else ()
        runtime.step(*inputs, **({"target": batch} if order.stages - 1 in mine else {}))

    for _ in range(3):
        step()
    dist.barrier()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        step()
    profiler.export_chrome_trace(f"{folder}/rank{rank}.json")
    dist.destroy_process_group()


def stripped(trace: dict[str, Any]) -> dict[str, Any]:
    """Return a trace with the operations alone, and with nothing about the machine that made it."""
    chosen = (event for event in trace["traceEvents"] if event.get("ph") == "X" and event.get("cat") in KEPT)
    events = [{name: event[name] for name in ("ph", "cat", "name", "tid", "ts", "dur")} | {"pid": 1} for event in chosen]
    threads = {tid: 1 + place for place, tid in enumerate(dict.fromkeys(event["tid"] for event in events))}
    about = trace["distributedInfo"]
    return {
        "schemaVersion": trace["schemaVersion"],
        "distributedInfo": {name: about[name] for name in ("backend", "rank", "world_size")},
        "displayTimeUnit": trace["displayTimeUnit"],
        "baseTimeNanoseconds": trace["baseTimeNanoseconds"],
        "traceEvents": [event | {"tid": threads[event["tid"]]} for event in events],
    }


def main() -> None:
    """Run all ranks, and write the stripped files."""
    import torch.multiprocessing as mp

    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(run_rank, args=(folder,), nprocs=RANKS, start_method="spawn")
        for rank in range(RANKS):
            trace = json.loads((Path(folder) / f"rank{rank}.json").read_text(encoding="utf-8"))
            text = json.dumps(stripped(trace), separators=(",", ":"))
            (DATA / f"torch_trace_rank{rank}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
