"""What rings do to made-up numbers, state by state, as plain data from which JavaScript alone can draw each."""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats
from hybridlab.checks import each_of, short_repr
from hybridlab.errors import HybridLabError

Data = dict[str, Any]
Ring = Callable[[Floats], Iterable[Any]]  # values (ranks, n) -> one Hop after the other, with what is held: sums, not means
Counts = npt.NDArray[np.int64]  # (ranks, chunks, ranks): how often each rank's number is in each chunk on each rank

MOST_HOPS = 60
MOST_TIMES = 99  # that one rank's number can be in a sum
NEAR = 0.05  # of a whole number: rounding of a wire format; the mean of up to 8 ranks is further away
TIMES = {1: "", 2: " twice"}


def ring_data(rings: Mapping[str, Ring], ranks: Iterable[int]) -> Data:
    """Return every state of every ring at every number of ranks, from the start to the last hop.

    A ring is run twice: on numbers of which each is 1 on one rank and 0 on the others, so that sums tell who is in them; and
    on 2**r on rank r, one number a chunk. Raises :class:`HybridLabError` for what is no ring, and for one that holds means.

    >>> from hybridlab.collectives import ring_all_reduce
    >>> data = ring_data({"correct": lambda values: ring_all_reduce(values, average=False, record=True).hops}, [2])
    >>> [state["whole"] for state in data["runs"]["2"]["rings"][0]]
    [0, 2, 4]
    >>> data["runs"]["2"]["rings"][0][1]["sent"]
    'Rank 0 sends chunk 0 to rank 1, rank 1 sends chunk 1 to rank 0.'
    >>> data["runs"]["2"]["rings"][0][1]["told"]
    'The receiver adds. Whole from now on: chunk 1 on rank 0, chunk 0 on rank 1.'
    """
    runs = {str(count): _run(rings, count) for count in ranks}
    return {"names": list(rings), "ranks": [int(count) for count in runs], "runs": runs}


def _run(rings: Mapping[str, Ring], ranks: int) -> Data:
    states = [_states(name, ring, ranks) for name, ring in rings.items()]
    last = max(len(each) for each in states)
    phases = next([state["phase"] for state in each] for each in states if len(each) == last)
    for each in states:  # a ring that ends earlier stays as it is
        ended = {**each[-1], "messages": [], "sent": "This ring has ended.", "told": ""}
        each += [ended] * (last - len(each))
    return {"phases": phases, "mean": float(np.mean(2.0 ** np.arange(ranks))), "rings": states}


def _states(name: str, ring: Ring, ranks: int) -> list[Data]:
    eye: Floats = np.eye(ranks)
    powers: Floats = np.exp2(np.arange(ranks, dtype=np.float64))
    hops = _hops(name, ring, np.tile(eye, ranks), ranks)
    parts = [eye[:, None, :].repeat(ranks, axis=1).astype(np.int64), *(_counts(name, hop, ranks) for hop in hops)]
    start = powers[:, None].repeat(ranks, axis=1)
    numbered = _hops(name, ring, start, ranks)
    if len(numbered) != len(hops):
        raise HybridLabError(f"the ring {name!r} makes {len(hops)} hops with some numbers and {len(numbered)} with others")
    values = [start, *(_held(name, hop, ranks, ranks) for hop in numbered)]
    whole = np.array([(each == 1).all(axis=2) for each in parts])
    lost = np.logical_or.accumulate(whole) & ~whole
    marks = np.where(whole, "whole", np.where(lost, "lost", ""))
    phases = ["start", *(str(hop.phase) for hop in hops)]
    messages = [[], *(_messages(name, hop, ranks) for hop in hops)]
    sentences = ["Every rank holds its own numbers alone.", *map(_told, pairwise(parts), pairwise(marks), messages[1:])]
    return [
        {
            "phase": phases[place],
            "messages": messages[place],
            "parts": parts[place].tolist(),
            "values": np.round(values[place], 6).tolist(),
            "marks": marks[place].tolist(),
            "whole": int(whole[place].sum()),
            "error": float(np.round(np.abs(values[place] / ranks - powers.mean()).max(), 6)),
            "sent": _sent(messages[place]) if place else "Nothing is sent yet.",
            "told": sentences[place],
        }
        for place in range(len(parts))
    ]


def _hops(name: str, ring: Ring, values: Floats, ranks: int) -> list[Any]:
    if not callable(ring):
        raise HybridLabError(f"the ring {name!r} must be a function of values, shape (ranks, n), that returns hops, not {short_repr(ring)}")
    hops = list(each_of(ring(values), f"the ring {name!r} must return hops"))
    if not ranks <= len(hops) + 1 <= MOST_HOPS:
        raise HybridLabError(f"the ring {name!r} must make {ranks - 1} to {MOST_HOPS - 1} hops for {ranks} ranks, not {len(hops)}")
    for hop in hops:
        missing = [part for part in ("phase", "sender", "receiver", "chunk", "held") if getattr(hop, part, None) is None]
        if missing:
            raise HybridLabError(f"a hop of the ring {name!r} has no {missing[0]}: pass the hops of a run with record=True")
    return hops


def _held(name: str, hop: Any, ranks: int, size: int) -> Floats:
    held = np.asarray(hop.held, dtype=np.float64)
    if held.shape != (ranks, size) or not np.isfinite(held).all():
        raise HybridLabError(f"what the ring {name!r} holds after a hop must be finite numbers of shape ({ranks}, {size})")
    return held


def _counts(name: str, hop: Any, ranks: int) -> Counts:
    """Return how often each rank's number is in each chunk, shape (ranks, chunks, ranks); refuse what is no sum."""
    held = _held(name, hop, ranks, ranks * ranks).reshape(ranks, ranks, ranks)
    counts = np.rint(held)
    if (np.abs(held - counts) > NEAR).any() or (np.abs(counts) > MOST_TIMES).any():
        worst = held.flat[np.abs(held - counts).argmax()]
        raise HybridLabError(f"the ring {name!r} must hold sums of the ranks' numbers, not {worst:g} of one: no means")
    return counts.astype(np.int64)


def _messages(name: str, hop: Any, ranks: int) -> list[list[int]]:
    """Return [sender, receiver, chunk] of every message of a hop."""
    columns = [np.asarray(each).reshape(-1).tolist() for each in (hop.sender, hop.receiver, hop.chunk)]
    sound = len({len(column) for column in columns}) == 1
    if not sound or not all(isinstance(value, int) and 0 <= value < ranks for column in columns for value in column):
        raise HybridLabError(f"a message of the ring {name!r} has a sender, a receiver and a chunk, each from 0 to {ranks - 1}")
    return [list(message) for message in zip(*columns, strict=True)]


def _sent(messages: list[list[int]]) -> str:
    """Return who sends what to whom, in a sentence."""
    message = ", ".join(f"rank {sender} sends chunk {chunk} to rank {receiver}" for sender, receiver, chunk in messages)
    return f"{message[:1].upper()}{message[1:]}." if message else "Nobody sends anything."


def _told(parts: tuple[Counts, Counts], marks: tuple[Any, Any], messages: list[list[int]]) -> str:
    """Return what receivers made of a hop's messages, which sums are whole by it, and which are lost, in sentences."""
    before, after = parts
    added = [(after[to, chunk] == before[to, chunk] + before[rank, chunk]).all() for rank, to, chunk in messages]
    kept = [(after[to, chunk] == before[rank, chunk]).all() for rank, to, chunk in messages]
    sentences = ["The receiver adds."] if all(added) else ["The receiver keeps what it gets."] if all(kept) else []
    poor = [(rank, chunk) for rank, _, chunk in messages if all(kept) and not all(added) and marks[0][rank, chunk] != "whole"]
    if poor:
        rank, chunk = poor[0]
        held = f"chunk {chunk} of rank {rank} holds {holders(before[rank, chunk])}"
        sentences.append(f"But {len(poor)} of the {len(messages)} chunks sent are no whole sums: {held}.")
    for mark, word in (("whole", "Whole from now on"), ("lost", "Whole sums that are overwritten")):
        places = np.argwhere((marks[1] == mark) & (marks[0] != mark)).tolist()
        if places:
            sentences.append(f"{word}: {', '.join(f'chunk {chunk} on rank {rank}' for rank, chunk in places)}.")
    return " ".join(sentences)


def holders(counts: Counts) -> str:
    """Return whose numbers are in a sum, given how often each rank's is.

    >>> holders(np.array([1, 0, 2])), holders(np.array([0, 1, 0]))
    ('ranks 0 and 2 twice', 'rank 1 alone')
    """
    several = [f"{rank}{TIMES.get(count, f' {count} times')}" for rank, count in enumerate(counts.tolist()) if count]
    if len(several) < 2:
        return f"rank {several[0]} alone" if several else "nothing"
    return f"ranks {', '.join(several[:-1])} and {several[-1]}"
