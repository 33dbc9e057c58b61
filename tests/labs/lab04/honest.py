"""Lab 4's build with each twist, written from its sentence."""

from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]
Values = np.ndarray[Any, Any]


def ring(to: int, first: int) -> Function:
    """A ring that writes down which chunk each rank has just received. Rank r sends to r + to, and begins with chunk r + first."""

    def ring_all_reduce(values: Values) -> Any:
        ranks = len(values)
        held = [np.array_split(row.copy(), ranks) for row in values]
        latest = [(rank + first) % ranks for rank in range(ranks)]  # the chunk that each rank has received last
        messages = []
        for step in range(2 * (ranks - 1)):
            sent = [held[rank][latest[rank]].copy() for rank in range(ranks)]
            received = [0] * ranks
            for rank in range(ranks):
                there = (rank + to) % ranks
                chunk = received[there] = latest[rank]
                held[there][chunk] = held[there][chunk] + sent[rank] if step < ranks - 1 else sent[rank].copy()
            latest = received
            messages.append(sent)
        return np.array([np.concatenate(row) for row in held]) / ranks, messages

    return ring_all_reduce


WAYS = {
    "backwards": (-1, 0),
    "one-ahead": (1, 1),
    "one-behind": (1, -1),
    "backwards-one-ahead": (-1, 1),
    "backwards-one-behind": (-1, -1),
    "two-ahead": (1, 2),
    "two-behind": (1, -2),
    "backwards-two-ahead": (-1, 2),
    "backwards-two-behind": (-1, -2),
    "four-ahead": (1, 4),
    "four-behind": (1, -4),
    "backwards-four-ahead": (-1, 4),
    "backwards-four-behind": (-1, -4),
    "five-ahead": (1, 5),
    "five-behind": (1, -5),
    "backwards-five-ahead": (-1, 5),
    "backwards-five-behind": (-1, -5),
}
TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab04.t7": {name: lambda function, to=to, first=first: ring(to, first) for name, (to, first) in WAYS.items()}
}
