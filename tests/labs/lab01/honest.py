"""The build of lab 1 under each of its twists, written from the clause of the twist."""

from collections.abc import Callable
from typing import Any

Rank = Callable[[int, int, int, int], int]  # takes stage, replica, K and D


def _messages(rank: Rank, towards: int = 1) -> Callable[[int, int, int], list[Any]]:
    """Return the function for a numbering of the ranks and the direction of the ring, 1 or -1."""

    def messages(stages: int, replicas: int, microbatches: int) -> list[Any]:
        sent: list[Any] = []
        for replica in range(replicas):
            for stage in range(stages):
                here = rank(stage, replica, stages, replicas)
                if stage + 1 < stages:
                    there = rank(stage + 1, replica, stages, replicas)
                    sent += [(here, there, "activation"), (there, here, "gradient")] * microbatches
                neighbour = rank(stage, (replica + towards) % replicas, stages, replicas)
                sent += [(here, neighbour, "ring")] * (2 * (replicas - 1))
        return sent

    return messages


def _around(rank: Rank) -> Rank:
    """Return a numbering that counts one further; the last rank becomes 0."""
    return lambda stage, replica, stages, replicas: (rank(stage, replica, stages, replicas) + 1) % (stages * replicas)


def _on_the_page(stage: int, replica: int, stages: int, replicas: int) -> int:
    return replica * stages + stage


def _by_stage(stage: int, replica: int, stages: int, replicas: int) -> int:
    return stage * replicas + replica


SOLUTIONS = {
    ("lab01.t6", "counted-down"): _messages(lambda stage, replica, stages, replicas: stages * replicas - 1 - (replica * stages + stage)),
    ("lab01.t6", "stages-counted-down"): _messages(lambda stage, replica, stages, replicas: replica * stages + (stages - 1 - stage)),
    ("lab01.t6", "one-further"): _messages(_around(_on_the_page)),
    ("lab01.t6", "last-stage-first"): _messages(lambda stage, replica, stages, replicas: (stages - 1 - stage) * replicas + replica),
    ("lab01.t6", "stage-by-stage-counted-down"): _messages(
        lambda stage, replica, stages, replicas: stages * replicas - 1 - (stage * replicas + replica)
    ),
    ("lab01.t6", "stage-by-stage-one-further"): _messages(_around(_by_stage)),
    ("lab01.t6", "stage-by-stage-ring-back"): _messages(_by_stage, -1),
    ("lab01.t6", "one-further-ring-back"): _messages(_around(_on_the_page), -1),
    ("lab01.t6", "stage-by-stage-one-further-ring-back"): _messages(_around(_by_stage), -1),
}
