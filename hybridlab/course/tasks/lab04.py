"""Lab 4, the ring all-reduce: the tasks, and what each says to an answer."""

import numpy as np

from hybridlab.checks import known_name, short_repr
from hybridlab.collectives import Link, all_reduce_factors, all_reduce_time
from hybridlab.course.tasks.answers import a_text, mistake_behind, near, require_number, some_numbers
from hybridlab.course.tasks.checking import Feedback, right, task, wrong
from hybridlab.course.tasks.ring_faults import as_published, fault_in, otherwise
from hybridlab.course.tasks.rings import FAULTS, HALVES, LETTERS, RingPlan, Rule, fault_of, faulty_ring, whose, with_rules
from hybridlab.course.tasks.rules import Formula
from hybridlab.errors import HybridLabError

CHECKS = ("equal", "bytes", "same", "mean")
SIZES = (4, *range(2, 4), *range(5, 10))  # ranks that a rule is tried with


@task(
    "lab04.t1",
    title="Who has the sum?",
    prompt="give, for each of the chunks 0 to 7 of a ring of 8 ranks, the rank that holds its whole sum after the reduce-scatter",
)
def who_has_the_sum(answer: object) -> Feedback:
    """Judge the owners of the eight chunks after a reduce-scatter in which chunk c starts at rank c."""
    ranks = 8
    found = some_numbers(answer, ranks, "rank that holds the whole sum of a chunk")
    whole = (whose(RingPlan(), ranks)[ranks - 1] == 1).all(axis=2)  # by rank and chunk
    truth = [int(np.flatnonzero(whole[:, chunk])[0]) for chunk in range(ranks)]
    if found == truth:
        return right("rank c - 1 is the last that chunk c comes to; so rank r holds the whole sum of chunk r + 1, not of chunk r")
    known = [
        (list(range(ranks)), "chunk c starts at rank c and never comes back there: whom does it come to last?"),
        ([(chunk + 1) % ranks for chunk in range(ranks)], "rank c + 1 is the first that chunk c comes to: whom does it come to last?"),
        ([(chunk + 2) % ranks for chunk in range(ranks)], "this goes round the wrong way: rank c sends to rank c + 1"),
    ]
    for values, sentence in known:
        if found == values:
            return wrong(sentence)
    chunk = next(place for place in range(ranks) if found[place] != truth[place])
    hops = f"{ranks - 1} hops from rank {chunk}"
    return wrong(f"chunk {chunk} is not whole on rank {found[chunk]:g}: it makes {hops}, and after rank {ranks - 1} comes rank 0")


@task(
    "lab04.t2",
    title="One step of the ring",
    prompt='give the chunk that rank r sends in step s, as {"reduce-scatter": "...", "all-gather": "..."}, formulas in r, s and D',
    points=3,
)
def one_step_of_the_ring(answer: object) -> Feedback:
    """Judge two formulas by running the ring that they make, with 2 to 9 ranks."""
    if not isinstance(answer, dict) or set(answer) != set(HALVES):
        raise HybridLabError(f'the answer is {{"reduce-scatter": "...", "all-gather": "..."}}, not {short_repr(answer)}')
    rules = [_rule(answer[half], half) for half in HALVES]
    plan = with_rules(*rules)
    for ranks in SIZES:
        fault = fault_in(plan, ranks)
        if fault:
            return wrong(f"with {ranks} ranks: {fault}", *as_published(plan, ranks))
    whole = (whose(plan, 4)[3] == 1).all(axis=2)
    owned = ", ".join(f"chunk {chunk} on rank {rank}" for rank, chunk in np.argwhere(whole).tolist())
    return right(f"run with 2 to 9 ranks: every rank ends with every sum. With 4, the reduce-scatter leaves {owned}")


@task(
    "lab04.t3",
    title="Messages and bytes",
    prompt="give the messages that one rank sends, the bytes that it sends, and the messages that all ranks send together, "
    "for 8 ranks with 2 GB of gradients each, as a list of three numbers",
)
def messages_and_bytes(answer: object) -> Feedback:
    """Judge messages and bytes of a ring of 8 ranks with 2e9 bytes of gradients on each."""
    ranks, nbytes = 8, 2e9
    messages, sent, together = some_numbers(answer, 3, "messages of a rank, its bytes, or all messages")
    steps, share = len(whose(RingPlan(), ranks)) - 1, sent / nbytes
    if (messages, together) == (steps, steps * ranks) and near(sent, steps * nbytes / ranks, 1e6):
        return right("2(D-1) messages of S/D bytes: 3.5 GB. However many ranks there are, it stays below 2S, 4 GB")
    of_messages = [
        (steps / 2, "7 messages are the reduce-scatter alone: the all-gather takes as many again"),
        (2 * ranks, "a chunk that has come round to the rank before its first has met all: D-1 hops, not D, in each half"),
        (6, "2 log2 D is what a tree needs: in a ring a message goes to the next rank alone"),
        (ranks, "8 is the number of ranks: count the steps of both halves"),
    ]
    of_bytes = [
        (2.0, "2S is the limit for many ranks: with 8 there are 14 messages of an eighth of the gradients"),
        (0.875, "this is one half: the all-gather sends as much again"),
        (1.0, "each rank sends 14 chunks, and a chunk is an eighth of its gradients"),
        (float(steps), "no message carries all gradients of a rank: it carries one chunk of 8"),
        (1.75e-9, "this is in GB: give bytes"),
    ]
    if messages != steps:
        return wrong(mistake_behind(messages, of_messages, 0) or f"a rank does not send {messages:g} messages: one a step, in both halves")
    if not near(sent, steps * nbytes / ranks, 1e6):
        hint = f"{share:g} times its gradients is not what a rank sends: 14 messages of one chunk each"
        return wrong(mistake_behind(share, of_bytes, 1e-12 if share < 1e-6 else 1e-3) or hint)
    return wrong(f"all ranks together do not send {together:g} messages: every rank sends in every step")


@task(
    "lab04.t4",
    title="Where the ring overtakes the tree",
    prompt="give the number of bytes from which on the ring is faster than the tree, for 64 ranks, 5 microseconds and 25 GB/s",
    points=2,
)
def where_the_ring_overtakes(answer: object) -> Feedback:
    """Judge the bytes at which a ring and a binomial tree of 64 ranks take equally long."""
    value = require_number(answer, "a number of bytes", "250000")
    ranks, a, b = 64, 5e-6, 1 / 25e9
    link = Link(a, 1 / b)
    ring, tree = (all_reduce_factors(name, ranks) for name in ("ring", "tree"))
    truth = (ring.latency - tree.latency) * a / ((tree.bandwidth - ring.bandwidth) * b)
    times = [1e6 * all_reduce_time(name, ranks, max(value, 0), link) for name in ("ring", "tree")]
    compared = f"with {value:,.0f} bytes the ring takes {times[0]:,.1f} microseconds, the tree {times[1]:,.1f}"
    if near(value, truth, 0.01 * truth):
        return right(f"{compared}. With fewer the 126 messages of the ring cost more than its small chunks save")
    mistakes = [
        (truth / 1e6, "this is in MB: give bytes"),
        ((2 * 63 - 6) * a / ((6 - 2 * 63 / 64) * b), "the tree goes up and down again: 12 messages, one after the other, not 6"),
        ((63 - 12) * a / ((12 - 63 / 64) * b), "the ring has two halves: 126 steps, not 63"),
        ((2 * 64 - 12) * a / (10 * b), "the ring has 2(D-1) steps, not 2D"),
    ]
    return wrong(mistake_behind(value, mistakes, 0.01 * value) or f"{compared}: they do not take equally long")


@task(
    "lab04.t5",
    title="Five broken rings",
    prompt='name the fault of each of the rings A to E, as {"A": "...", "B": "...", ...}',
    points=3,
)
def five_broken_rings(answer: object) -> Feedback:
    """Judge the faults named, by what a ring with the named fault would leave."""
    if not isinstance(answer, dict) or set(answer) != set(LETTERS):
        raise HybridLabError(f'the answer names a fault for each of the rings, {{"A": "...", ...}} to E, not {short_repr(answer)}')
    off = []
    for letter in LETTERS:
        text = a_text(answer[letter], f"the fault of ring {letter}", "no division").strip().lower()
        named = FAULTS[known_name(text, FAULTS, f"fault of ring {letter}:")]
        if named is not fault_of(letter):
            off.append(f"ring {letter}: {otherwise(text, named, fault_of(letter))}")
    if off:
        return wrong(*off)
    return right("each fault leaves a trace of its own: who is missing, who is there twice, and where")


@task(
    "lab04.t6",
    title="What a check lets through",
    prompt='give for each of the four checks the letters of the broken rings that pass it, such as {"equal": "AB", "bytes": "none", ...}',
    points=2,
)
def what_a_check_lets_through(answer: object) -> Feedback:
    """Judge which faulty rings pass which check, by running all checks on all rings."""
    if not isinstance(answer, dict) or set(answer) != set(CHECKS):
        raise HybridLabError(f'the answer has letters, or "none", for "equal", "bytes", "same" and "mean", not {short_repr(answer)}')
    off = []
    for check in CHECKS:
        passing = _letters(answer[check], check)
        for letter in LETTERS:
            passes = _passes(check, letter)
            if passes != (letter in passing):
                off.append(f"{check}: ring {letter} {'passes' if passes else 'does not pass'} it; {_REASONS[check][passes]}")
                break
    if off:
        return wrong(*off)
    return right("equal replicas and counted bytes let the published ring, B, through; one comparison with a known mean stops all five")


_REASONS = {
    "equal": ("its ranks hold different numbers", "its ranks all hold the same numbers, wrong as they are"),
    "bytes": ("it leaves out a step", "it sends all its messages, whatever is in them"),
    "same": ("count how many ranks are in each of its sums: D of them bring a value back", "every value comes back"),
    "mean": ("a sum lacks a rank or has one twice, and the values of the ranks differ", "it is the mean"),
}


def _passes(check: str, letter: str) -> bool:
    """Whether a faulty ring of 4 ranks passes a check, on numbers that differ from rank to rank and from place to place."""
    values = np.sqrt(np.arange(1.0, 33.0)).reshape(4, 8)
    if check == "same":
        values = values[:1].repeat(4, axis=0)
    found, messages = faulty_ring(letter, values)
    if check == "equal":
        return bool((found == found[0]).all())
    return messages == 6 if check == "bytes" else np.allclose(found, values.mean(axis=0))


def _letters(value: object, check: str) -> set[str]:
    text = "".join(value) if isinstance(value, list) and all(isinstance(each, str) for each in value) else value
    letters = a_text(text, f"what passes the check {check!r}", "AB").upper().replace(",", "").replace(" ", "")
    if letters == "NONE":
        return set()
    if not set(letters) <= set(LETTERS) or not letters:
        raise HybridLabError(f'what passes the check {check!r} is some of the letters A to E, or "none", not {short_repr(value)}')
    return set(letters)


def _rule(text: object, half: str) -> Rule:
    formula = Formula(a_text(text, f"the {half}", "(r + 2 * s) % D"), {"r", "s", "D"}, f"the {half}")
    return lambda rank, step, ranks: formula(r=rank, s=step, D=ranks)
