"""The coding task ("build") ``ring_all_reduce`` of lab 4: values to try, the judge of messages, known mistakes, changes ("twists")."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats
from hybridlab.checks import counted, distinct_texts, short_repr
from hybridlab.collectives.ring import chunk_bounds
from hybridlab.course.checking.builds import WITHOUT_THE_TWIST, Case, KnownMistake
from hybridlab.course.checking.checking import Feedback, right, wrong
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.course.labs.lab04.rings import FAULTS, RingPlan, Way, contributors, one_below, steps_of
from hybridlab.errors import HybridLabError

Shares = Callable[
    [int], tuple[float, float]
]  # number of ranks -> factor of the values at the start, factor of the sums before the all-gather
Messages = list[list[Floats]]  # indices: the step, the rank that sends
MOST_RANKS = 19
MANY = 8  # ranks: with at most so many ranks all kinds of sizes are tried
# the sums are divided by the number of ranks at the end, before the all-gather, or at the start
SHARES: tuple[Shares, ...] = (lambda ranks: (1, 1), lambda ranks: (1, 1 / ranks), lambda ranks: (1 / ranks, 1))
RANKS_FIRST = "your messages have the rank as their first index, messages[r][s]: swap the two indices, messages[s][r]"
IN_THE_TEXT = Way()  # direction and first chunks in the lab's task (without a twist)
FEW = 4  # ranks: with at most so many ranks a sentence says whose numbers are in a wrong message


def cases(rng: np.random.Generator) -> Iterator[Case]:
    """Yield values for 1 to 8 ranks and for 5 random larger numbers of ranks, up to 19.

    There are no numbers, fewer than ranks, a multiple of the ranks, and sizes that the ranks do not divide.
    """
    larger = rng.choice(range(MANY + 1, MOST_RANKS + 1), 5, replace=False)
    for ranks in (*range(1, MANY + 1), *sorted(larger.tolist())):
        sizes = {int(rng.integers(1, ranks + 1)), int(rng.integers(ranks + 1, 5 * ranks))}
        if ranks <= MANY:
            sizes |= {0, 1, 2 * ranks, 2 * ranks + 1}
        for size in sorted(sizes, key=lambda size: (size == 0, size < ranks, size % ranks > 0, size)):  # multiples first
            yield Case((rng.standard_normal((ranks, size)),), f"{counted(ranks, 'rank')} with {counted(size, 'number')} each")


def read_ring(result: Any) -> tuple[Floats, Messages]:
    """Return the averages and the messages that a student's function returned. Raise an error if they have wrong types or shapes."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise HybridLabError(f"the function returns two values, (averages, messages), not {short_repr(result)}", "not-two-values")
    averages, messages = result
    if isinstance(averages, (list, tuple)) and _depth(averages) in (1, 3) and _depth(messages) == 2:
        raise HybridLabError("the averages come first: return averages, messages", "messages-first")
    rows = _float64(averages, "averages are")
    if not rows.ndim:
        rows = rows.reshape(1)  # a single number: the judge then says which shape is right
    if rows.ndim == 2 and len(rows) > 1 and np.shares_memory(rows[0], rows[1]):
        raise HybridLabError("all ranks share one row of the averages in memory: give each rank a copy of its own", "one-row")
    if not _is_list(messages) or not all(_is_list(sent) for sent in messages):
        raise HybridLabError(f"messages are a list of steps, and a step is a list of arrays, not {short_repr(messages)}", "not-a-list")
    steps, ranks = 2 * (len(rows) - 1), len(rows)
    if ranks != 2 and len(messages) == ranks and all(len(sent) == steps for sent in messages):
        raise HybridLabError(RANKS_FIRST, "ranks-first")
    if _is_in_halves(messages):
        raise HybridLabError("messages are one list of all steps, not one list for each half: join the two lists", "two-lists")
    read = []
    for step, sent in enumerate(messages):
        if len(sent) != ranks:
            raise HybridLabError(f"step {step} has {counted(len(sent), 'message')}, not one from each rank", "wrong-messages")
        read.append([_message(message, f"the message of rank {rank} in step {step} is") for rank, message in enumerate(sent)])
    return rows, read


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _is_in_halves(messages: Any) -> bool:
    """Whether the messages are two lists of steps, one for the reduce-scatter and one for the all-gather."""
    if len(messages) != 2 or not all(isinstance(half, list) for half in messages):
        return False
    step = messages[0][0] if messages[0] else []
    if isinstance(step, list) and step:
        return isinstance(step[0], (list, np.ndarray))
    return not any(messages)  # with 1 rank both halves are empty


def _depth(value: Any) -> int:
    """Return the number of axes of an array, or the depth of nested lists."""
    if isinstance(value, (list, tuple)):
        return 1 + (_depth(value[0]) if value else 0)
    return int(np.ndim(value)) if isinstance(value, np.ndarray) else 0


def _message(message: Any, what: str) -> Floats:
    array = _float64(message, what)
    if array.ndim != 1:
        raise HybridLabError(f"{what} an array with one axis, such as values[0, 2:4], not of shape {array.shape}", "wrong-shape")
    return array


def _float64(value: Any, what: str) -> Floats:
    try:
        array = np.asarray(value)
    except ValueError:
        raise HybridLabError(f"{what} an array of numbers, not {short_repr(value)}", "ragged") from None
    if array.dtype.kind not in "iuf":
        raise HybridLabError(f"{what} an array of numbers, not {short_repr(value)}", "not-a-number")
    if isinstance(value, np.ndarray) and array.dtype != np.float64:
        raise HybridLabError(f"{what} float64, as the values are, not {array.dtype}, which rounds more", "wrong-dtype")
    if not np.isfinite(array).all():
        raise HybridLabError(f"{what} not finite: {short_repr(value)}", "not-finite")
    return array.astype(np.float64, copy=False)


def judge_ring(result: tuple[Any, Messages], values: Any, way: Way = IN_THE_TEXT) -> Feedback:
    """Judge a student's averages and messages for one case. ``way`` has the direction and the first chunks of the right ring."""
    averages, messages = result
    ranks = len(values)
    if averages.shape != values.shape:
        return wrong("wrong-averages", f"the averages have shape {averages.shape}, not {values.shape}: one row for each rank")
    if len(messages) != 2 * (ranks - 1):
        wanted = f"a ring of {counted(ranks, 'rank')} has {2 * (ranks - 1)}"
        return wrong("wrong-steps", f"you return messages of {counted(len(messages), 'step')}; {wanted}: D-1 in each half")
    if fault := wrong_sizes(messages, values, way):
        return wrong(*fault)
    mean = values.mean(axis=0)
    off = np.argwhere(~(np.abs(averages - mean) <= 1e-12 * np.maximum(1, np.abs(mean))))
    if fault := not_a_ring(messages, values, way):
        code, sentence = fault
        if len(off) or code == "changed-later":
            return wrong(code, sentence)
        return wrong("invented-messages", f"the averages are right, but they do not come from these messages: {sentence}")
    if len(off):
        rank, place = off[0].tolist()
        found, wanted = distinct_texts(averages[rank, place], mean[place])
        ends = f"rank {rank} ends with {found} for number {place}, and the mean is {wanted}"
        return wrong("wrong-mean", f"the messages are right, but {ends}")
    if (averages != averages[0]).any():
        rank = int(np.flatnonzero((averages != averages[0]).any(axis=1))[0])
        return wrong(
            "ranks-differ", f"ranks 0 and {rank} have averages that differ in the last bits: every rank must keep the sums as they arrive"
        )
    place = number_that_was_not_sent(averages, messages, way)
    if place is not None:
        other = f"the average of number {place} differs in its last bits from the whole sum that was sent, divided by {ranks}"
        return wrong("invented-averages", f"the messages are right, but {other}: take the averages from the chunks that arrived")
    return right()


def wrong_sizes(messages: Messages, values: Floats, way: Way) -> tuple[str, str] | None:
    """Return a code and a sentence if messages have other sizes than the chunks of ``numpy.array_split``; else None."""
    ranks, size = values.shape
    if ranks > 1 < size and any(len(message) == size for message in messages[0]):
        return "not-cut", f"a message has all {size} numbers of its rank: cut them into {ranks} chunks, and send one chunk in each step"
    cut = f"cut as numpy.array_split does, and send {way.start} first"
    sizes = [high - low for low, high in chunk_bounds(size, ranks)]
    for rank in range(ranks):
        nbytes = 8 * sum(len(sent[rank]) for sent in messages)
        due = 8 * sum(sizes[way.chunk(rank, step, ranks)] for step in range(len(messages)))
        if nbytes != due:
            return "wrong-bytes", f"rank {rank} sends {nbytes} bytes in all, but its chunks have {due} bytes, 8 a number: {cut}"
    for (step, sent), rank in product(enumerate(messages), range(ranks)):
        chunk = way.chunk(rank, step, ranks)
        if len(sent[rank]) != sizes[chunk]:
            sends = f"in step {step} rank {rank} sends {counted(len(sent[rank]), 'number')}, but chunk {chunk} has {sizes[chunk]}"
            due_then = f"in step 0 rank r sends {way.start}, and then what it has just received"
            return "another-chunk", f"{sends}: {cut if step == 0 else due_then}"
    return None


def not_a_ring(messages: Messages, values: Floats, way: Way) -> tuple[str, str] | None:
    """Return a code and a sentence about the first message that a right ring does not send; None if all are right.

    The sums may be divided by the number of ranks at the start, before the all-gather, or at the end. Raise an error if the messages
    would be right with their two indices swapped. With 2 ranks there are also 2 steps, so ``read_ring`` cannot see this mistake.
    """
    fault = _first_fault(messages, values, way)
    if fault and len(values) == 2 and not _first_fault([list(sent) for sent in zip(*messages, strict=True)], values, way):
        raise HybridLabError(RANKS_FIRST, "ranks-first")
    return fault


def _first_fault(messages: Messages, values: Floats, way: Way) -> tuple[str, str] | None:
    ranks, size = values.shape
    chunks = [values[:, low:high] for low, high in chunk_bounds(size, ranks)]
    own = [chunks[way.chunk(rank, 0, ranks)][rank] for rank in range(ranks)]
    before = 1 / ranks if ranks > 1 and all(_near(messages[0][rank], own[rank] / ranks) for rank in range(ranks)) else 1.0
    for (step, sent), rank in product(enumerate(messages), range(ranks)):
        chunk = way.chunk(rank, step, ranks)
        fault = _fault_of(sent[rank], messages[step - 1][way.sender(rank, ranks)], before * chunks[chunk][rank], step, ranks)
        if fault:
            code, wanted = fault
            if step < ranks - 1 and _is_later(sent[rank], chunks[chunk].sum(axis=0), ranks):
                later = f"it has the sum of all ranks, which rank {rank} gets later"
                return "changed-later", f"messages[{step}][{rank}] has changed after it was sent: {later}; send a copy"
            said = f"in step {step} rank {rank} sends {_in_words(sent[rank], values, chunks)}"
            return code, f"{said}, not {wanted.format(chunk=chunk)}"
    return None


def number_that_was_not_sent(averages: Floats, messages: Messages, way: Way) -> int | None:
    """Return the index of the first number whose average does not come from the sum in the messages; None if all averages do.

    The messages and the averages must be right up to rounding. A ring adds the numbers of the ranks in another order for each chunk,
    so a mean that was computed without the messages has other last bits.
    """
    ranks = len(averages)
    if ranks == 1:
        return None
    owned = [way.chunk(rank, ranks - 1, ranks) for rank in range(ranks)]  # by rank: the chunk whose whole sum it sends first
    sent = np.concatenate([messages[ranks - 1][owned.index(chunk)] for chunk in range(ranks)])
    other = (averages[0] != sent) & (averages[0] != sent / ranks) & (averages[0] != sent * (1 / ranks))
    return int(np.flatnonzero(other)[0]) if other.any() else None


def _fault_of(message: Floats, received: Floats, own: Floats, step: int, ranks: int) -> tuple[str, str] | None:
    """Return a code for a wrong message and words for the right message, or None if the message is right."""
    if step == 0:
        return None if _near(message, own) else ("wrong-start", "its own chunk {chunk}")
    if step < ranks - 1:
        return None if _near(message, received + own) else ("wrong-sum", "what it has just received plus its own chunk {chunk}")
    if step == ranks - 1:
        whole = _near(message, received + own) or _near(message, (received + own) / ranks)
        return None if whole else ("wrong-whole-sum", "the whole sum of chunk {chunk}, with which the all-gather begins")
    return None if np.array_equal(message, received) else ("not-passed-on", "chunk {chunk} as it has just received it")


def _is_later(message: Floats, whole: Floats, ranks: int) -> bool:
    """Whether a message has the sums that its rank holds at the end. Divided sums count only if the message is a view of another array."""
    return len(message) > 0 and (_near(message, whole) or (message.base is not None and _near(message, whole / ranks)))


def _near(found: Floats, wanted: Floats) -> bool:
    return bool((np.abs(found - wanted) <= 1e-12 * np.maximum(1, np.abs(wanted))).all())


def _in_words(message: Floats, values: Floats, chunks: list[npt.NDArray[Any]]) -> str:
    """Return words for a message: its chunk and the ranks whose numbers it has, or "other numbers" if they are not found."""
    ranks = len(values)
    if not message.any():
        return "zeros" if len(message) else "nothing"
    if ranks <= FEW:
        sums = [np.array(counts) for counts in product(range(3), repeat=ranks) if any(counts)]
        for (chunk, part), counts, share in product(enumerate(chunks), sums, (1, 1 / ranks)):
            if part.shape[1] == len(message) and _near(message, share * (counts @ part)):
                return f"chunk {chunk} with {contributors(counts)}"
    return "other numbers"


def mistakes(way: Way = IN_THE_TEXT) -> tuple[KnownMistake, ...]:
    """Return the known mistakes of a ring. Most have three programs, which divide at the end, before the all-gather and at the start."""
    question = "which chunk is whole on rank r when the all-gather begins?"
    backwards = RingPlan(lambda rank, step, ranks: (rank + step) % ranks, lambda rank, step, ranks: (rank - 1 + step) % ranks, to=-1)
    rings = {
        "published-ring": (
            f"your ring is the published ring: {question}" if way == IN_THE_TEXT else f"the published ring has this fault, too: {question}",
            FAULTS["all-gather starts at chunk r"],
        ),
        "all-gather-adds": (
            "in your all-gather the receiver adds the received chunk: it must replace its own chunk",
            FAULTS["all-gather adds"],
        ),
        "counts-up": (one_below(way), FAULTS["reduce-scatter counts up"]),
        "wrong-direction": (f"your ring turns in the other direction: rank r sends to {way.receiver}", backwards),
    }
    begins = f"your ring starts with other chunks: in this task rank r begins with {way.start}"
    others = [
        RingPlan(lambda rank, step, ranks: (rank + 1 - step) % ranks, lambda rank, step, ranks: (rank + 2 - step) % ranks),
        RingPlan(lambda rank, step, ranks: (rank - 1 - step) % ranks, lambda rank, step, ranks: (rank - step) % ranks),
    ]
    received = "your messages[step][r] is the message that rank r receives: it must be the message that rank r sends"
    forgotten = [] if way == IN_THE_TEXT else [ring_program(IN_THE_TEXT, RingPlan(), share) for share in SHARES]
    return (
        *(KnownMistake("twist-missed", WITHOUT_THE_TWIST, program) for program in forgotten),
        *(KnownMistake(code, sentence, ring_program(way, plan, share)) for code, (sentence, plan) in rings.items() for share in SHARES),
        *(KnownMistake("another-start", begins, ring_program(way, plan, share)) for plan in others for share in SHARES),
        *(KnownMistake("by-receiver", received, ring_program(way, RingPlan(), share, _by_receiver)) for share in SHARES),
        KnownMistake(
            "no-division",
            "your averages are the sums: divide them by the number of ranks",
            ring_program(way, FAULTS["no division"], SHARES[0]),
        ),
    )


def _by_receiver(messages: Messages) -> Messages:
    return [[sent[-1], *sent[:-1]] for sent in messages]


def ring_program(way: Way, plan: RingPlan, shares: Shares, placed: Callable[[Messages], Messages] = list) -> Callable[[Any], Any]:
    """Return a program that runs a plan as a ring with another direction or other first chunks. ``placed`` moves its messages.

    Plans are written for the ring in the lab's task (without a twist). The program renumbers ranks and chunks so that the ring with
    this way becomes a ring of the lab's task, runs the plan, and undoes the renumbering.
    """

    def result(values: Floats) -> tuple[Floats, Messages]:
        ranks, size = values.shape
        rank_of = [way.to * rank % ranks for rank in range(ranks)]  # this renumbering is its own inverse
        chunk_of = [way.chunk(rank, 0, ranks) for rank in rank_of]
        bounds = [chunk_bounds(size, ranks)[chunk] for chunk in chunk_of]
        padded = np.zeros((ranks, ranks, max(high - low for low, high in bounds)))
        for chunk, (low, high) in enumerate(bounds):
            padded[:, chunk, : high - low] = values[rank_of, low:high]
        first, later = shares(ranks)
        history = [first * (later if step >= ranks - 1 else 1) * held for step, held in enumerate(steps_of(plan, padded))]
        messages = []
        for step, held in enumerate(history[:-1]):
            rule, there = (plan.scatter, step) if step < ranks - 1 else (plan.gather, step - ranks + 1)
            sent = [(rank, rule(rank, there, ranks)) for rank in range(ranks)]
            messages.append([held[rank, chunk, : bounds[chunk][1] - bounds[chunk][0]] for rank, chunk in sent])
        ends = np.zeros(values.shape)
        for chunk, (low, high) in enumerate(bounds):
            ends[:, low:high] = history[-1][rank_of, chunk, : high - low]
        undivided = first * later == 1 and plan.divides
        return ends / (ranks if undivided else 1), [[sent[rank] for rank in rank_of] for sent in placed(messages)]

    return result


def examples_of(way: Way) -> tuple[Example]:
    """Return the example for a ring with this way: values, averages and messages."""
    values = np.array([[1.0], [10.0], [100.0]])
    averages, messages = ring_program(way, RingPlan(), SHARES[0])(values)
    return (Example((values,), (averages.tolist(), [[message.tolist() for message in sent] for sent in messages])),)


NUMBERS = {1: "one", 2: "two", 4: "four", 5: "five"}  # chunks; no multiple of 3, which would change nothing for the 3 ranks of the example


def _twist_of(way: Way) -> Twist:
    """Return the change of the task ("twist") to this way. It has its own judge: no map can exchange chunks of different lengths."""
    backwards = "rank r sends to rank r - 1, and rank 0 sends to rank D - 1" if way.to < 0 else ""
    begins = f"in step 0 rank r sends {way.start} (modulo D)" if way.first else ""
    start = f"{NUMBERS[abs(way.first)]}-{'ahead' if way.first > 0 else 'behind'}" if way.first else ""

    return Twist(
        "-".join(filter(None, ["backwards" if backwards else "", start])),
        "; ".join(filter(None, [backwards, begins])),
        about="way",
        judge=partial(judge_ring, way=way),
        mistakes=mistakes(way),
        examples=examples_of(way),
    )


TWISTS = (
    _twist_of(Way(to=-1)),
    *(_twist_of(Way(to, sign * first)) for first in NUMBERS for to in (1, -1) for sign in (1, -1)),
)
