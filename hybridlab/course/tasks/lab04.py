"""Lab 4, the ring all-reduce: the tasks and the feedback on their answers."""

import numpy as np

from hybridlab.checks import known_name, short_repr
from hybridlab.collectives import Link, all_reduce_factors, all_reduce_time
from hybridlab.course.tasks.answers import Mistake, near, require_entries, require_number, require_numbers, require_text
from hybridlab.course.tasks.checking import Feedback, judge_value, right, task, wrong, wrong_value
from hybridlab.course.tasks.rings import (
    FAULTS,
    HALVES,
    LETTERS,
    RingPlan,
    Rule,
    contradiction,
    contributions,
    fault_of,
    faulty_ring,
    first_fault,
    is_published,
)
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
    found = require_numbers(answer, ranks, "rank that holds the whole sum of a chunk")
    whole = (contributions(RingPlan(), ranks)[ranks - 1] == 1).all(axis=2)  # by rank and chunk
    truth = [int(np.flatnonzero(whole[:, chunk])[0]) for chunk in range(ranks)]
    if found == truth:
        return right("rank c - 1 is the last that chunk c comes to; so rank r holds the whole sum of chunk r + 1, not of chunk r")
    mistakes: list[Mistake] = [
        (list(range(ranks)), "first-rank", "chunk c starts at rank c and never comes back there: which rank does it come to last?"),
        (
            [(chunk + 1) % ranks for chunk in range(ranks)],
            "next-rank",
            "rank c + 1 is the first that chunk c comes to: which rank does it come to last?",
        ),
        (
            [(chunk + 2) % ranks for chunk in range(ranks)],
            "wrong-direction",
            "this goes round the ring in the wrong direction: rank c sends to rank c + 1",
        ),
    ]
    chunk = next(place for place in range(ranks) if found[place] != truth[place])
    hops = f"{ranks - 1} hops from rank {chunk}"
    hint = f"chunk {chunk} is not whole on rank {found[chunk]:g}: it makes {hops}, and rank {ranks - 1} sends to rank 0"
    return wrong_value(found, mistakes, hint)


@task(
    "lab04.t2",
    title="One step of the ring",
    prompt='give the chunk that rank r sends in step s, as {"reduce-scatter": "...", "all-gather": "..."}, formulas in r, s and D',
    points=3,
)
def one_step_of_the_ring(answer: object) -> Feedback:
    """Judge two formulas for the chunks that ranks send. The ring with these formulas is run with 2 to 9 ranks."""
    texts = require_entries(answer, HALVES, '{"reduce-scatter": "...", "all-gather": "..."}')
    scatter, gather = (_rule(texts[half], half) for half in HALVES)
    plan = RingPlan(scatter, gather)
    for ranks in SIZES:
        fault = first_fault(plan, ranks)
        if fault:
            code, sentence = fault
            if is_published(plan, ranks):
                question = "this is the published ring: which chunk is whole on rank r when the all-gather begins?"
                return wrong("published-ring", f"with {ranks} ranks: {sentence}", question)
            return wrong(code, f"with {ranks} ranks: {sentence}")
    whole = (contributions(plan, 4)[3] == 1).all(axis=2)
    owned = ", ".join(f"chunk {chunk} on rank {rank}" for rank, chunk in np.argwhere(whole).tolist())
    return right(f"run with 2 to 9 ranks: every rank ends with every sum. With 4, the reduce-scatter leaves {owned}")


@task(
    "lab04.t3",
    title="Messages and bytes",
    prompt="give the messages that one rank sends, the bytes that it sends, and the messages that all ranks send together, "
    "for 8 ranks with 2 GB of gradients each, as a list of three numbers",
)
def messages_and_bytes_of_a_ring(answer: object) -> Feedback:
    """Judge the messages and the bytes in a ring of 8 ranks. Each rank has 2e9 bytes of gradients."""
    ranks, nbytes = 8, 2e9
    messages, sent, together = require_numbers(answer, 3, "messages of a rank, its bytes, or all messages")
    steps, share = len(contributions(RingPlan(), ranks)) - 1, sent / nbytes
    if messages != steps:
        mistakes: list[Mistake] = [
            (steps / 2, "reduce-scatter-alone", "7 messages are the reduce-scatter alone: the all-gather takes as many again"),
            (
                2 * ranks,
                "d-hops",
                "when a chunk reaches the rank before its first, it has met all ranks: D-1 hops, not D, in each half",
            ),
            (6, "tree", "a tree needs 2 log2 D messages: in a ring each message goes to the next rank"),
            (ranks, "ranks-not-steps", "8 is the number of ranks: count the steps of both halves"),
        ]
        hint = f"a rank does not send {messages:g} messages: one a step, in both halves"
        return wrong_value(messages, mistakes, hint, code="wrong-messages")
    if not near(sent, steps * nbytes / ranks, 1e6):
        mistakes = [
            (2.0, "limit-of-many-ranks", "2S is the limit for many ranks: with 8 there are 14 messages of an eighth of the gradients"),
            (0.875, "one-half", "this is one half: the all-gather sends as much again"),
            (1.0, "gradients-once", "each rank sends 14 chunks, and a chunk is an eighth of its gradients"),
            (float(steps), "not-cut", "no message carries all gradients of a rank: it carries one chunk of 8"),
            (1.75e-9, "gigabytes", "this is in GB: give bytes"),
        ]
        hint = f"a rank does not send {share:g} times its gradients: it sends 14 messages of one chunk each"
        return wrong_value(share, mistakes, hint, within=1e-12 if share < 1e-6 else 1e-3, code="wrong-bytes")
    if together != steps * ranks:
        hint = f"all ranks together do not send {together:g} messages: every rank sends in every step"
        return wrong("wrong-sum", hint)
    return right("2(D-1) messages of S/D bytes: 3.5 GB. However many ranks there are, it stays below 2S, 4 GB")


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
    one_way_tree = (2 * 63 - 6) * a / ((6 - 2 * 63 / 64) * b)
    return judge_value(
        value,
        truth,
        relative=0.01,
        lesson=f"{compared}. With fewer the 126 messages of the ring cost more than its small chunks save",
        mistakes=[
            (truth / 1e6, "megabytes", "this is in MB: give bytes"),
            (one_way_tree, "tree-one-way", "messages go up the tree and down again: 12 messages, one after the other, not 6"),
            ((63 - 12) * a / ((12 - 63 / 64) * b), "one-half", "the ring has two halves: 126 steps, not 63"),
            ((2 * 64 - 12) * a / (10 * b), "d-steps", "the ring has 2(D-1) steps, not 2D"),
        ],
        hint=f"{compared}: they do not take equally long",
    )


@task(
    "lab04.t5",
    title="Five broken rings",
    prompt='name the fault of each of the rings A to E, as {"A": "...", "B": "...", ...}',
    points=3,
)
def five_broken_rings(answer: object) -> Feedback:
    """Judge the named faults. The result of each ring is compared with the result that the named fault would give."""
    faults = require_entries(answer, LETTERS, 'a fault for each of the rings A to E, {"A": "...", ...}')
    contradictions = []
    for letter in LETTERS:
        text = require_text(faults[letter], f"the fault of ring {letter}", "no division").strip().lower()
        named = FAULTS[known_name(text, FAULTS, f"fault of ring {letter}:")]
        if named is not fault_of(letter):
            contradictions.append(f"ring {letter}: {contradiction(text, named, fault_of(letter))}")
    if contradictions:
        return wrong("another-fault", *contradictions)
    return right("each fault leaves a trace of its own: who is missing, who is there twice, and where")


@task(
    "lab04.t6",
    title="What a check lets through",
    prompt='give for each of the four checks the letters of the broken rings that pass it, such as {"equal": "AB", "bytes": "none", ...}',
    points=2,
)
def what_a_check_lets_through(answer: object) -> Feedback:
    """Judge which faulty rings pass which check, by running all checks on all rings."""
    letters = require_entries(answer, CHECKS, 'letters, or "none", for "equal", "bytes", "same" and "mean"')
    codes, sentences = [], []
    for check in CHECKS:
        passing = _letters(letters[check], check)
        for letter in LETTERS:
            passes = _passes(check, letter)
            if passes != (letter in passing):
                codes.append(f"{check}-{'passed' if passes else 'failed'}")
                sentences.append(f"{check}: ring {letter} {'passes' if passes else 'does not pass'} it; {_REASONS[check][passes]}")
                break
    if sentences:
        return wrong(codes[0], *sentences)
    return right("equal replicas and counted bytes let the published ring, B, through; one comparison with a known mean stops all five")


_REASONS = {  # for each check, why a ring fails it and why a ring passes it
    "equal": ("its ranks hold different numbers", "its ranks all hold the same numbers, which are wrong"),
    "bytes": ("it leaves out a step", "it sends all its messages, whatever is in them"),
    "same": ("count how many ranks are in each of its sums: only a sum of D ranks gives the value back", "it gives every value back"),
    "mean": ("a sum lacks a rank or has one twice, and the values of the ranks differ", "it is the mean"),
}


def _passes(check: str, letter: str) -> bool:
    """Whether a faulty ring of 4 ranks passes a check. For "same", all ranks have equal numbers; else all numbers are different."""
    values = np.sqrt(np.arange(1.0, 33.0)).reshape(4, 8)
    if check == "same":
        values = values[:1].repeat(4, axis=0)
    found, messages = faulty_ring(letter, values)
    if check == "equal":
        return bool((found == found[0]).all())
    return messages == 6 if check == "bytes" else np.allclose(found, values.mean(axis=0))


def _letters(value: object, check: str) -> set[str]:
    """Return the rings that are named as passing a check."""
    text = "".join(value) if isinstance(value, list) and all(isinstance(each, str) for each in value) else value
    letters = require_text(text, f"what passes the check {check!r}", "AB").upper().replace(",", "").replace(" ", "")
    if letters == "NONE":
        return set()
    if not set(letters) <= set(LETTERS) or not letters:
        wanted = f'what passes the check {check!r} is some of the letters A to E, or "none"'
        raise HybridLabError(f"{wanted}, not {short_repr(value)}", "not-letters")
    return set(letters)


def _rule(text: object, half: str) -> Rule:
    formula = Formula(require_text(text, f"the {half}", "(r + 2 * s) % D"), {"r", "s", "D"}, f"the {half}")
    return lambda rank, step, ranks: formula(r=rank, s=step, D=ranks)
