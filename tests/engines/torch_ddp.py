"""Average gradients with torch's DDP on two ranks that hold the same stage: a program, started by tests/engines/test_torch_ddp.py."""

from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, quantization_hooks
from torch.nn.parallel import DistributedDataParallel
from torch_start import join


class Stage(torch.nn.Module):
    """A stage whose gradient is the array that it gets."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(torch.zeros(size))

    def forward(self, gradient: Any) -> Any:
        return self.weights @ gradient


def averaged(gradient: Any, hook: Any) -> Any:
    """Return the gradient after a backward of DDP with a communication hook; None for plain DDP."""
    stage = DistributedDataParallel(Stage(len(gradient)).to(gradient.dtype))
    if hook is not None:
        stage.register_comm_hook(dist.group.WORLD, hook)
    stage(gradient).backward()
    return stage.module.weights.grad.numpy()


def main() -> None:
    rank, folder = join()
    gradient = torch.from_numpy(np.load(folder / "gradients.npy")[rank])
    found = {
        "plain": averaged(gradient, None),
        "plain of float32": averaged(gradient.float(), None),
        "fp16": averaged(gradient.float(), default_hooks.fp16_compress_hook),
    }
    hooks = {
        "bf16": default_hooks.bf16_compress_hook,
        "per tensor": quantization_hooks.quantization_pertensor_hook,
        "per channel": quantization_hooks.quantization_perchannel_hook,
    }
    for name, hook in hooks.items():
        try:
            found[name] = averaged(gradient.float(), hook)
        except Exception as why:
            found[f"refused: {name}"] = np.array(f"{type(why).__name__}: {why}")
    np.savez(folder / f"rank{rank}.npz", **found)


if __name__ == "__main__":
    main()
