"""Lab 4's build with each twist, as a student writes it from the clause."""

from collections.abc import Callable
from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]


def ring(to: int, first: int) -> Callable[[Values], Any]:
    """A ring that writes down which chunk each rank has just received. Rank r sends to r + to, and begins with chunk r + first."""

    def ring_all_reduce(values: Values) -> Any:
        ranks = len(values)
        held = [np.array_split(row.copy(), ranks) for row in values]
        latest = [(rank + first) % ranks for rank in range(ranks)]
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


SOLUTIONS = {
    ("lab04.t7", "backwards"): ring(-1, 0),
    ("lab04.t7", "one-ahead"): ring(1, 1),
    ("lab04.t7", "backwards-two-ahead"): ring(-1, 2),
    ("lab04.t7", "one-behind"): ring(1, -1),
    ("lab04.t7", "backwards-one-ahead"): ring(-1, 1),
    ("lab04.t7", "two-ahead"): ring(1, 2),
    ("lab04.t7", "backwards-one-behind"): ring(-1, -1),
}
