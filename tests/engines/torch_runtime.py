"""Run schedules in torch's own pipeline runtime: a program for four ranks, started by tests/engines/test_torch_runtime.py.

It imports nothing of hybridlab. It gets orders as CSV files and a network as arrays, and it writes gradients as arrays. torch has no public
way to run an order of one's own, so this program uses private names, which torch 2.13 to 2.15 have.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import PipelineScheduleSingle, _PipelineScheduleRuntime, get_schedule_class
from torch_start import join

CPU = torch.device("cpu")


def module(arrays: dict[str, Any], layers: list[int], last_layer: int) -> torch.nn.Sequential:
    """Return the layers of a stage, with tanh after each layer but the last of the network."""
    parts: list[torch.nn.Module] = []
    for layer in layers:
        matrix, bias = torch.from_numpy(arrays[f"matrix{layer}"]), torch.from_numpy(arrays[f"bias{layer}"])
        linear = torch.nn.Linear(*matrix.shape, dtype=matrix.dtype)
        linear.load_state_dict({"weight": matrix.T, "bias": bias.ravel()})
        parts += [linear] + [torch.nn.Tanh()] * (layer < last_layer)
    return torch.nn.Sequential(*parts)


def run(case: dict[str, Any], arrays: dict[str, Any], folder: Path, rank: int, group: Any) -> dict[str, Any]:
    """Run one step of a case and return the gradients of the layers on this rank, with what torch says about its order."""
    held = [stage for stage, device in enumerate(case["device_of"]) if device == rank]
    count, last_layer = len(case["device_of"]), case["layers"][-1][-1]
    modules = {stage: module(arrays, case["layers"][stage], last_layer) for stage in held}
    stages = [PipelineStage(modules[stage], stage, count, CPU, group=group) for stage in held]
    settings = {"loss_fn": torch.nn.functional.cross_entropy, "scale_grads": case["scale_grads"]}
    if case["class"] is None:
        schedule = _PipelineScheduleRuntime(stages, case["microbatches"], **settings)
        schedule._load_csv(str(folder / case["csv"]), format="compute_only")
    else:
        chosen = get_schedule_class(case["class"])
        single = issubclass(chosen, PipelineScheduleSingle)
        schedule = chosen(stages[0] if single else stages, case["microbatches"], **settings)
    inputs, labels = torch.from_numpy(arrays["inputs"]), torch.from_numpy(arrays[case["labels"]])
    schedule.step(*[inputs] * (0 in held), **({"target": labels} if count - 1 in held else {}))
    order = [str(action) for action in schedule.pipeline_order[rank]] if case["class"] is None else []
    found = {"order": np.array(order)}
    for stage in held:
        linears = [part for part in modules[stage] if isinstance(part, torch.nn.Linear)]
        for layer, linear in zip(case["layers"][stage], linears, strict=True):
            found[f"matrix{layer}"], found[f"bias{layer}"] = linear.weight.grad.T.numpy(), linear.bias.grad.numpy()[None]
    return found


def main() -> None:
    rank, folder = join()
    arrays = dict(np.load(folder / "network.npz"))
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    results: dict[str, Any] = {}
    for case in json.loads((folder / "cases.json").read_text(encoding="utf-8")):
        ranks = case["ranks"]  # all four, or one half of them
        if rank not in ranks:
            continue
        group = None if len(ranks) == 4 else halves[ranks[0] // 2]
        try:
            found = run(case, arrays, folder, rank - ranks[0], group)
        except AssertionError as why:  # torch refuses an order on all ranks alike, before the first message
            found = {"refused": np.array(str(why))}
        results |= {f"{case['name']}/{name}": array for name, array in found.items()}
    np.savez(folder / f"rank{rank}.npz", **results)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
