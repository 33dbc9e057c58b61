"""What torch's pipeline package does, collected without any message: a program for one rank, started by tests/engines/test_torch_facts.py.

It reads orders as CSV files and writes what it has found as JSON. A private name that a newer torch no longer has ends it with an error.
"""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.distributed import pipelining
from torch.distributed.pipelining import PipelineStage, schedules
from torch.distributed.pipelining._utils import generate_stage_to_rank_mapping
from torch.distributed.pipelining.stage import _PipelineStageBase
from torch_start import join


class Stand(_PipelineStageBase):
    """A stage that has numbers and no network: a schedule can be planned with it, not run."""

    def __init__(self, stage: int, stages: int, rank: int, ranks: int) -> None:
        self.stage_index, self.num_stages, self.group_rank, self.group_size, self.group = stage, stages, rank, ranks, None
        self.submod = torch.nn.Identity()


Stand.__abstractmethods__ = frozenset()


def planned(chosen: type, ranks: int, microbatches: int, chunks: int) -> Any:
    """Return a schedule of torch with stands for stages, as rank 0 sees it."""
    stages = [Stand(chunk * ranks, ranks * chunks, 0, ranks) for chunk in range(chunks)]
    single = issubclass(chosen, schedules.PipelineScheduleSingle)
    return chosen(stages[0] if single else stages, microbatches, loss_fn=lambda *_: None)


def order_of(schedule: Any) -> dict[int, list[Any]]:
    """Return the actions of each rank, with None where it is idle."""
    return schedule._get_pipeline_order() if isinstance(schedule, schedules.PipelineScheduleSingle) else schedule.pipeline_order


def refusal(call: Callable[[], Any]) -> str | None:
    """Return the text of the error of a call, or None if there is none."""
    try:
        call()
    except Exception as why:
        return str(why)
    return None


def classes() -> list[str]:
    """Return the names of torch's classes of schedules that are public and complete."""
    found = inspect.getmembers(schedules, inspect.isclass)
    return [name for name, each in found if name.startswith("Schedule") and issubclass(each, schedules._PipelineSchedule)]


def torch_orders(cases: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """For each schedule that has a class of its own: its name, its orders, and its CSV as torch writes it."""
    found = []
    for case in cases:
        chosen = schedules.get_schedule_class(case["torch"])
        schedule = planned(chosen, case["devices"], case["microbatches"], case["chunks"])
        orders = [[str(action) for action in actions if action is not None] for actions in order_of(schedule).values()]
        idle = sum(action is None for action in order_of(schedule)[0])
        text = None
        if not isinstance(schedule, schedules.PipelineScheduleSingle):
            schedule._dump_csv(str(folder / "torch.csv"), format="compute_only")
            text = (folder / "torch.csv").read_text(encoding="utf-8")
        found.append({"class": chosen.__name__, "orders": orders, "idle on rank 0": idle, "csv": text})
    return found


def loaded(case: dict[str, Any], folder: Path) -> Any:
    """Return torch's runtime with one of our CSV files, with stands for stages."""
    schedule = planned(schedules._PipelineScheduleRuntime, case["devices"], case["microbatches"], case["chunks"])
    path = folder / "ours.csv"
    path.write_text(case["csv"], encoding="utf-8")
    schedule._load_csv(str(path), format="compute_only")
    return schedule


def dumped(case: dict[str, Any], folder: Path) -> str:
    """Return what torch writes of one of our schedules without further arguments, with the messages that it has added."""
    loaded(case, folder)._dump_csv(str(folder / "dumped.csv"))
    return (folder / "dumped.csv").read_text(encoding="utf-8")


def peaks(case: dict[str, Any], folder: Path) -> list[int]:
    """Return the most activations that each rank holds, counted by torch 2.15 or newer, one for each stage and microbatch."""
    schedule = loaded(case, folder)
    found = []
    for rank in range(case["devices"]):
        stages = [stage for stage, device in enumerate(case["device_of"]) if device == rank]
        plan = pipelining.analyze_pipeline_activation_liveness(schedule, pp_rank=rank, stage_indices=stages, granularity="stage_microbatch")
        found.append(1 + max(plan.slot_by_stage_and_microbatch.values()))
    return found


class Watched(torch.nn.Module):
    """Two layers that note in a list when a forward runs and when the gradient between the layers is computed."""

    def __init__(self, stage: int, log: list[str]) -> None:
        super().__init__()
        self.one, self.two, self.stage, self.log = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3), stage, log

    def forward(self, values: Any) -> Any:
        hidden = self.one(values)
        self.log.append(f"{self.stage} forward")
        hidden.register_hook(lambda _: self.log.append(f"{self.stage} gradient"))
        return self.two(hidden)


def split_backward(folder: Path) -> list[str]:
    """Return what two stages of one rank have noted; forwards stand between the two halves of the first backwards."""
    log: list[str] = []
    stages = [PipelineStage(Watched(stage, log), stage, 2, torch.device("cpu")) for stage in range(2)]
    schedule = schedules._PipelineScheduleRuntime(stages, 2, loss_fn=torch.nn.functional.mse_loss)
    (folder / "split.csv").write_text("0F0,1F0,1I0,0I0,0F1,1F1,1W0,0W0,1I1,0I1,1W1,0W1\n", encoding="utf-8")
    schedule._load_csv(str(folder / "split.csv"))
    for _ in range(2):  # in the first step torch runs the stages once more, to find out their shapes
        log.clear()
        schedule.step(torch.ones(4, 3), target=torch.zeros(4, 3))
    return log


def main() -> None:
    _, folder = join()
    asked = json.loads((folder / "asked.json").read_text(encoding="utf-8"))
    one = planned(schedules.Schedule1F1B, 4, 8, 1)
    runtime = planned(schedules._PipelineScheduleRuntime, 4, 8, 1)
    found: dict[str, Any] = {
        "classes": classes(),
        "unknown": {name: refusal(lambda name=name: schedules.get_schedule_class(name)) for name in asked["names"]},
        "orders": torch_orders(asked["orders"], folder),
        "deadlock": refusal(lambda: loaded(asked["deadlock"], folder)),
        "refused": {case["name"]: refusal(lambda case=case: loaded(case, folder)) for case in asked["csv"]},
        "dumped": {case["name"]: dumped(case, folder) for case in asked["csv"] if case["name"] in asked["one copy"]},
        "1F1B in the runtime": refusal(lambda: runtime._prepare_schedule_with_comms(order_of(one))),
        "simulate": refusal(lambda: loaded(asked["csv"][0], folder)._simulate()),
        "placements": {style: list(generate_stage_to_rank_mapping(4, 8, style).values()) for style in ("loop", "v")},
        "split backward": split_backward(folder),
    }
    if hasattr(pipelining, "analyze_pipeline_activation_liveness"):
        found["peaks"] = [peaks(case, folder) for case in asked["peaks"]]
    (folder / "found.json").write_text(json.dumps(found), encoding="utf-8")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
