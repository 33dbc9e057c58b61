"""Lab 4, the ring all-reduce: the tasks, and the feedback on answers to them."""

from math import log2
from typing import Any

import numpy as np

from hybridlab.checks import known_name, short_repr
from hybridlab.collectives import all_reduce_factors
from hybridlab.course.checking.answers import require_entries, require_text
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, right, task, wrong
from hybridlab.course.checking.expressions import filled, formula_of
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab04.ring_messages import TWISTS, Messages, cases, examples_of, judge_ring, mistakes, read_ring
from hybridlab.course.labs.lab04.rings import (
    FAULTS,
    HALVES,
    LETTERS,
    ONE_BELOW,
    RingPlan,
    Rule,
    Way,
    contradiction,
    contributions,
    counts_up,
    fault_of,
    faulty_ring,
    first_fault,
    is_published,
    is_right,
    plus,
)
from hybridlab.errors import HybridLabError

CHECKS = ("equal", "bytes", "same", "mean")
SIZES = (4, 2, 3, *range(5, 41))  # numbers of ranks with which a student's formulas are tried


@number_task("lab04.t1", title="Who has the sum?", draws={"ranks": range(7, 13), "ahead": (0, 2, 3, 4)})
def who_has_the_sum(ranks: int = 8, ahead: int = 0) -> Question:
    """Ask for the rank with the whole sum of each chunk after a reduce-scatter in which chunk c starts at rank c + ``ahead``."""
    whole = (contributions(RingPlan(), ranks)[ranks - 1] == 1).all(axis=2)  # [rank, chunk], if chunk c starts at rank c
    truth = [(int(np.flatnonzero(whole[:, chunk])[0]) + ahead) % ranks for chunk in range(ranks)]
    first, second = (f"rank {plus('c', ahead + hops)}" for hops in (0, 1))

    past_the_end = f", and rank {ranks - 1} sends to rank 0"
    starts = [(chunk + ahead) % ranks for chunk in range(ranks)]
    owners = Number(
        "rank that holds the whole sum of a chunk",
        truth,
        hint="chunk {place} {'is not whole' if value[place] in ranks else 'cannot be'} on rank {value[place]:g}: "
        "{hops[place] if value[place] in ranks else known}",
        given={
            "ranks": range(ranks),
            "hops": [f"it makes {ranks - 1} hops from rank {start}{past_the_end if start else ''}" for start in starts],
            "known": f"the ranks are 0 to {ranks - 1}",
        },
        fields=[f"Rank with the sum of chunk {chunk}" for chunk in range(ranks)],
        example="3",
        mistakes=[
            (starts, "first-rank", f"chunk c starts at {first} and never comes back there: which rank receives it last?"),
            (
                [(start + 1) % ranks for start in starts],
                "next-rank",
                f"{second} is the first to receive chunk c: which rank receives it last?",
            ),
            (
                [(start + 2) % ranks for start in starts],
                "wrong-direction",
                f"your answer goes round the ring in the wrong direction: {first} sends to {second}",
            ),
        ],
    )
    ring = f"a ring of {ranks} ranks" + (f" in which chunk c starts at {first} (modulo {ranks})," if ahead else ",")
    prompt = (
        f"give, for each of the chunks 0 to {ranks - 1} of {ring} the rank that holds its whole sum after the reduce-scatter, as a list"
    )
    last, whole_on = plus("c", ahead - 1), plus("r", 1 - ahead)
    lesson = f"chunk c reaches rank {last} last; so rank r holds the whole sum of chunk {whole_on}, not of chunk {plus('r', -ahead)}"
    return Question(prompt, [owners], lesson)


@task(
    "lab04.t2",
    title="One step of the ring",
    prompt='give the chunk that rank r sends in step s, as {"reduce-scatter": "...", "all-gather": "..."}, formulas in r, s and D',
    points=3,
)
def one_step_of_the_ring(answer: object) -> Feedback:
    """Judge two formulas for the chunks that ranks send. They must give a right ring for every number of ranks from 2 to 40."""
    texts = require_entries(answer, HALVES, '{"reduce-scatter": "...", "all-gather": "..."}')
    scatter, gather = (_rule(texts[half], half) for half in HALVES)
    plan = RingPlan(scatter, gather)
    for ranks in SIZES:
        fault = None if is_right(plan, ranks) else first_fault(plan, ranks)
        if fault:
            code, sentence = fault
            if is_published(plan, ranks):
                question = "your ring is the published ring: which chunk is whole on rank r when the all-gather begins?"
                return wrong("published-ring", f"with {ranks} ranks: {sentence}", question)
            if ranks == SIZES[0] and counts_up(plan, ranks):
                return wrong("counts-up", f"with {ranks} ranks: {sentence}", ONE_BELOW)
            return wrong(code, f"with {ranks} ranks: {sentence}")
    whole = (contributions(plan, 4)[3] == 1).all(axis=2)
    owned = ", ".join(f"chunk {chunk} on rank {rank}" for rank, chunk in np.argwhere(whole).tolist())
    return right(f"right for 2 to 40 ranks: every rank ends with every sum. With 4, the reduce-scatter leaves {owned}")


@number_task("lab04.t3", title="Messages and bytes", points=2, draws={"ranks": (8, 16, 32, 64), "gigabytes": (1, 2, 3, 4, 6, 8)})
def messages_and_bytes_of_a_ring(ranks: int = 8, gigabytes: int = 2) -> Question:
    """Ask for the numbers of messages and of bytes that the ranks of a ring send."""
    nbytes = gigabytes * 10**9
    ring = all_reduce_factors("ring", ranks)
    steps, share = round(ring.latency), ring.bandwidth
    half, tree = steps // 2, round(2 * log2(ranks))
    messages = Number(
        "messages of a rank",
        steps,
        hint="a rank does not send {value} messages: a rank sends one message in each step of both halves",
        code="wrong-messages",
        whole=True,
        mistakes=[
            (half, "reduce-scatter-alone", f"{half} messages are the reduce-scatter alone: the all-gather takes as many again"),
            (
                2 * ranks,
                "d-hops",
                f"a chunk has met all ranks after D-1 = {half} hops, because it starts with the numbers of one rank",
            ),
            (ranks, "ranks-not-steps", f"{ranks} is the number of ranks: count the steps of both halves"),
            (tree, "tree", "a tree needs 2 log2 D messages: in a ring each message goes to the next rank"),
        ],
    )
    sent = Number(
        "bytes of a rank",
        share * nbytes,
        hint=f"a rank does not send {{value / {nbytes}:g}} times its gradients: it sends {steps} messages of one chunk each",
        relative=1e-3,
        code="wrong-bytes",
        mistakes=[
            (
                2 * nbytes,
                "limit-of-many-ranks",
                f"2S is the limit for many ranks: with {ranks} there are {steps} messages, each with 1/{ranks} of the gradients",
            ),
            (
                share * nbytes / 2,
                "one-half",
                "your answer is the bytes of the reduce-scatter alone: the all-gather sends as many bytes again",
            ),
            (nbytes, "gradients-once", f"each rank sends {steps} chunks, and a chunk is 1/{ranks} of its gradients"),
            (
                steps * nbytes,
                "not-cut",
                f"in your answer a message carries all gradients of a rank: a message carries one of {ranks} chunks",
            ),
            (share * gigabytes, "gigabytes", "your answer is in GB: give bytes"),
        ],
    )
    together = Number(
        "messages of all ranks",
        steps * ranks,
        hint="all ranks together do not send {value} messages: every rank sends in every step",
        code="wrong-sum",
    )
    prompt = (
        "give the messages that one rank sends, the bytes that it sends, and the messages that all ranks send together, "
        f"for {ranks} ranks with {gigabytes} GB of gradients each, as a list of three numbers"
    )
    lesson = f"2(D-1) messages of S/D bytes: {share * gigabytes:g} GB. With any number of ranks it stays below 2S, {2 * gigabytes} GB"
    return Question(prompt, [messages, sent, together], lesson)


@number_task(
    "lab04.t4",
    title="Where the ring overtakes the tree",
    points=2,
    draws={"ranks": (16, 32, 64, 128), "microseconds": (2, 5, 10), "gigabytes": (12.5, 25, 50)},
)
def where_the_ring_overtakes(ranks: int = 64, microseconds: float = 5, gigabytes: float = 25) -> Question:
    """Ask for the number of bytes at which a ring and a binomial tree take the same time."""
    a, b = microseconds * 1e-6, 1 / (gigabytes * 1e9)
    ring, tree = (all_reduce_factors(name, ranks) for name in ("ring", "tree"))
    truth = (ring.latency - tree.latency) * a / ((tree.bandwidth - ring.bandwidth) * b)
    log = log2(ranks)
    natural = 2 * np.log(ranks)
    # for the ring and the tree: seconds for 0 bytes, and seconds for each byte
    costs = {name: (cost.latency * a, cost.bandwidth * b) for name, cost in (("ring", ring), ("tree", tree))}
    compared = (
        "with {value:,.0f} bytes the ring takes {1e6 * (ring[0] + ring[1] * max(value, 0)):,.1f} microseconds, "
        "the tree {1e6 * (tree[0] + tree[1] * max(value, 0)):,.1f}"
    )
    size = Number(
        "a number of bytes",
        truth,
        relative=0.001,  # with 128 ranks, 2S in place of 2(D-1)/D S changes the right value by 0.13 %
        example="250000",
        hint=f"{compared}: ring and tree do not take equally long",
        given=costs,
        mistakes=[
            (truth / 1e6, "megabytes", "your answer is in MB: give bytes"),
            (
                (ring.latency - log) * a / ((log - ring.bandwidth) * b),
                "tree-one-way",
                f"messages go up the tree and down again: {2 * log:g} messages, one after the other, not {log:g}",
            ),
            (
                (ranks - 1 - 2 * log) * a / ((2 * log - ring.bandwidth / 2) * b),
                "one-half",
                f"the ring has two halves: {2 * (ranks - 1)} steps, not {ranks - 1}",
            ),
            *(
                ((2 * ranks - tree.latency) * a / ((tree.bandwidth - sent) * b), "d-steps", "the ring has 2(D-1) steps, not 2D")
                for sent in (2, ring.bandwidth)
            ),
            (
                (ring.latency - tree.latency) * a / ((tree.bandwidth - 2) * b),
                "all-bytes",
                "in your answer a rank of the ring sends all its bytes twice: it sends 2(D-1) chunks, each with one D-th of the bytes",
            ),
            (truth / 1e3, "kilobytes", "your answer is in thousands of bytes: give bytes"),
            (8 * truth, "bits", "your answer is in bits: give bytes"),
            (truth / 8, "bits-a-second", f"the links carry {gigabytes:g} gigabytes a second, not gigabits"),
            (
                (ring.latency - natural) * a / ((natural - ring.bandwidth) * b),
                "natural-logarithm",
                f"the ranks halve in each round: the logarithm to base 2, {log:g} for {ranks} ranks",
            ),
            (
                (ring.latency - tree.latency) * a / ((2 - ring.bandwidth) * b),
                "tree-bytes-once",
                f"each of the {2 * log:g} messages of the tree has all bytes, and they are sent one after the other",
            ),
        ],
    )
    prompt = (
        f"give the number of bytes from which on the ring is faster than the tree, for {ranks} ranks, {microseconds:g} microseconds and "
        f"{gigabytes:g} GB/s, within 0.1 %"
    )
    both = filled(compared, {**costs, "value": truth})
    lesson = f"{both}. For fewer bytes the {2 * (ranks - 1)} messages of the ring cost more than its small chunks save"
    return Question(prompt, [size], lesson)


@task(
    "lab04.t5",
    title="Five broken rings",
    prompt='name the fault of each of the rings A to E, as {"A": "...", "B": "...", ...}',
    points=3,
)
def five_broken_rings(answer: object) -> Feedback:
    """Judge the fault that a student names for each ring. Each ring's result is compared with the result that this fault would give."""
    faults = _filled_in(answer, LETTERS, 'a fault for each of the rings A to E, {"A": "...", ...}')
    found: dict[str, tuple[str, str] | None] = {}
    for letter, text in faults.items():
        name = require_text(text, f"the fault of ring {letter}", "no division").strip().lower()
        try:
            named = FAULTS[known_name(name, FAULTS, f"fault of ring {letter}:")]
        except HybridLabError as why:
            found[letter] = (why.code, str(why))
            continue
        off = named is not fault_of(letter)
        found[letter] = ("another-fault", f"ring {letter}: {contradiction(name, named, fault_of(letter))}") if off else None
    lesson = "each fault leaves a trace of its own: which rank is missing, which rank is there twice, and where"
    return _part_by_part(found, LETTERS, "ring", lesson)


@task(
    "lab04.t6",
    title="What a check lets through",
    prompt='give for each of the four checks the letters of the broken rings that pass it, such as {"equal": "AB", "bytes": "none", ...}',
    points=2,
)
def what_a_check_lets_through(answer: object) -> Feedback:
    """Judge which faulty rings pass each of four checks. The right answers come from running every check on every ring."""
    letters = _filled_in(answer, CHECKS, 'letters, or "none", for "equal", "bytes", "same" and "mean"')
    found: dict[str, tuple[str, str] | None] = {}
    for check, value in letters.items():
        try:
            passing = _letters(value, check)
        except HybridLabError as why:
            found[check] = (why.code, str(why))
            continue
        off = next((letter for letter in LETTERS if _passes(check, letter) != (letter in passing)), None)
        found[check] = None
        if off:
            passes = _passes(check, off)
            sentence = f"{check}: ring {off} {'passes' if passes else 'does not pass'} this check; {_REASONS[check][passes]}"
            found[check] = (f"{check}-{'passed' if passes else 'failed'}", sentence)
    lesson = "equal replicas and counted bytes do not stop the published ring, B; one comparison with a known mean stops all five"
    return _part_by_part(found, CHECKS, "check", lesson)


@build_task(
    "lab04.t7",
    title="Build the ring",
    prompt="write a function ring_all_reduce(values) that returns the averages and the messages of a ring all-reduce",
    points=8,
    signature="ring_all_reduce(values)",
    cases=cases,
    reads=read_ring,
    mistakes=mistakes(),
    fresh=True,
    twists=TWISTS,
    examples=examples_of(Way()),
    lesson="D-1 steps add up and D-1 steps pass the results on; from step 1 on a rank sends the chunk that it has just received",
)
def build_a_ring(result: tuple[Any, Messages], values: Any) -> Feedback:
    """Judge a student's averages and messages for one case."""
    return judge_ring(result, values)


def _filled_in(answer: object, names: Any, what: str) -> dict[str, Any]:
    """Return the filled-in entries of an answer, by name. An empty list counts as filled in, with the meaning "none"."""
    given = require_entries(dict.fromkeys(names) | answer if isinstance(answer, dict) else answer, names, what)
    return {name: given[name] for name in names if given[name] is not None and str(given[name]).strip()}


def _part_by_part(found: dict[str, tuple[str, str] | None], names: Any, what: str, lesson: str) -> Feedback:
    """Return the feedback on all entries of an answer. ``found`` has None for a right entry, code and sentence for a wrong one."""
    good = [name for name in names if name in found and found[name] is None]
    faults = [fault for name in names if (fault := found.get(name))]
    left = [name for name in names if name not in found]
    if not faults and not left:
        return right(lesson)
    so_far = [f"right so far: {', '.join(good)}" if good else f"no {what} is right yet"]
    missing = [f"no answer yet: {', '.join(left)}"] if left else []
    return wrong(faults[0][0] if faults else "unanswered", *so_far, *(sentence for _, sentence in faults), *missing)


_REASONS = {  # for each check, why a ring fails it and why a ring passes it
    "equal": ("its ranks hold different numbers", "its ranks all hold the same numbers, which are wrong"),
    "bytes": ("it leaves out a step", "it sends all its messages, whatever is in them"),
    "same": ("count how many ranks are in each of its sums: only a sum of D ranks gives the value back", "it gives every value back"),
    "mean": ("a sum lacks a rank or has one twice, and the values of the ranks differ", "its result is the mean"),
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
    """Return the letters of the rings that, by the student's answer, pass a check."""
    text = "".join(value) or "none" if isinstance(value, list) and all(isinstance(each, str) for each in value) else value
    letters = require_text(text, f"what passes the check {check!r}", "AB").upper().replace(",", "").replace(" ", "")
    if letters == "NONE":
        return set()
    if not set(letters) <= set(LETTERS):
        wanted = f'what passes the check {check!r} is some of the letters A to E, or "none"'
        raise HybridLabError(f"{wanted}, not {short_repr(value)}", "not-letters")
    return set(letters)


def _rule(text: object, half: str) -> Rule:
    formula = formula_of(require_text(text, f"the {half}", "(r + 2 * s) % D"), ("r", "s", "D"), f"the {half}")
    return lambda rank, step, ranks: formula(r=rank, s=step, D=ranks)
