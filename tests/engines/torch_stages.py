"""Stages of a small torch network, and its training in one process, for tests that run both in processes of an engine."""

from typing import Any

import torch

from hybridlab.engines import StepWork

LAYERS, WIDTH, ROWS, RATE = 8, 6, 5, 0.3


def layer(place: int) -> torch.nn.Module:
    torch.manual_seed(100 + place)
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH, dtype=torch.float64), torch.nn.Tanh())


class Stages:
    """It makes the module of a stage: eight layers are spread evenly over all stages."""

    def __init__(self, stages: int) -> None:
        self.each = LAYERS // stages

    def __call__(self, stage: int) -> torch.nn.Module:
        return torch.nn.Sequential(*(layer(stage * self.each + place) for place in range(self.each)))


def samples(step: int, replica: int, microbatch: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(1000 * step + 100 * replica + microbatch)
    inputs, targets = (torch.randn(ROWS, WIDTH, generator=rng, dtype=torch.float64) for _ in range(2))
    return inputs, targets


def loss(output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return (output - targets).square().mean()


class Alone(StepWork):
    """The same training in one process, with torch's own backward and optimiser."""

    def __init__(self, replicas: int, microbatches: int, steps: int) -> None:
        self.sizes = replicas, microbatches, steps

    def result(self, rank: int) -> Any:
        replicas, microbatches, steps = self.sizes
        network, losses = Stages(1)(0), []
        optimiser = torch.optim.SGD(network.parameters(), lr=RATE)
        for step in range(steps):
            optimiser.zero_grad()
            parts = [samples(step, replica, microbatch) for replica in range(replicas) for microbatch in range(microbatches)]
            inputs, targets = (torch.cat(each) for each in zip(*parts, strict=True))
            mean = loss(network(inputs), targets)
            mean.backward()
            optimiser.step()
            losses.append(mean.item())
        return torch.cat([each.detach().ravel() for each in network.parameters()]).numpy(), losses
