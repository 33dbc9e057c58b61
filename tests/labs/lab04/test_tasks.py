"""Lab 4: every right answer passes, each typical wrong one gets its code, and the rings are what they say."""

import ast
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from lab04 import student_rings as rings
from lab04.honest import WAYS, ring
from misuse import junk, outcome
from solutions import lab_cells, solutions_of

from hybridlab import published
from hybridlab.collectives import ring_all_reduce
from hybridlab.course.checking.answers import same
from hybridlab.course.checking.builds import WITHOUT_THE_TWIST
from hybridlab.course.checking.expressions import formula_of
from hybridlab.course.labs.lab04.rings import (
    FAULTS,
    LETTERS,
    RingPlan,
    contributions,
    contributors,
    fault_of,
    faulty_ring,
    first_fault,
    is_right,
    plus,
)
from hybridlab.course.tasks import TASKS, check

FOUND = {letter: next(name for name, plan in FAULTS.items() if plan is fault_of(letter)) for letter in LETTERS}
BUILD = TASKS["lab04.t7"].instance(None).data
PASSING = {"equal": "BCD", "bytes": "BDE", "same": "none", "mean": "none"}


def rule(scatter: Any, gather: Any = "(r + 1 - s) % D") -> dict[str, Any]:
    return {"reduce-scatter": scatter, "all-gather": gather}


def named(**faults: str) -> dict[str, str]:
    return FOUND | faults


# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab04.t1", [0, 1, 2, 3, 4, 5, 6, 7], "first-rank"),
    ("lab04.t1", [1, 2, 3, 4, 5, 6, 7, 0], "next-rank"),
    ("lab04.t1", [2, 3, 4, 5, 6, 7, 0, 1], "wrong-direction"),
    ("lab04.t1", [7, 0, 1, 2, 3, 4, 5, 5], "wrong-value", "chunk 7", "rank 5"),
    ("lab04.t1", [0, 0, 1, 2, 3, 4, 5, 6], "wrong-value", "chunk 0 is not whole on rank 0", "7 hops from rank 0"),
    ("lab04.t1", [8, 0, 1, 2, 3, 4, 5, 6], "wrong-value", "chunk 0 cannot be on rank 8", "0 to 7"),
    ("lab04.t1", [7, 0, 1], "wrong-length", "3"),
    ("lab04.t2", rule("(r - s) % D", "(r - s) % D"), "published-ring", "rank 0", "chunk 0", "the numbers of rank 0 alone"),
    ("lab04.t2", rule("(r + s) % D"), "counts-up", "step 0", "rank 0", "chunk 1", "ranks 0 and 3", "which chunk has rank r just received"),
    ("lab04.t2", rule("r"), "added-twice", "chunk 3 of rank 0", "ranks 0 and 3 (2 times)"),
    ("lab04.t2", rule("0"), "added-twice", "step 1", "chunk 0 of rank 0", "ranks 0, 2 and 3 (2 times)"),
    ("lab04.t2", rule("(r - s) % D", "(r + 1) % D"), "partial-sum-left", "chunk 2 of rank 0", "ranks 0, 2 and 3"),
    ("lab04.t2", rule("(r - s) % D", "(r + 1 + s) % D"), "partial-sum-sent", "step 1", "rank 0", "chunk 2"),
    ("lab04.t2", rule("r - s"), "no-such-chunk", "rank 0", "chunk -1", "0 to 3"),
    ("lab04.t2", rule("(r - s) % 4", "(r + 1 - s) % 4"), "no-such-chunk", "2 ranks", "step 0", "all-gather", "rank 1", "chunk 2"),
    ("lab04.t2", rule("(r - s) % (D - 4)"), "division-by-zero", "r = 0, s = 0, D = 4"),
    ("lab04.t2", rule("(r + 11 * s) % D"), "partial-sum-sent", "5 ranks"),  # right for 2, 3, 4, 6 and 12 ranks
    ("lab04.t2", rule("(r - s) % D + D // 10"), "no-such-chunk", "10 ranks", "rank 9", "chunk 10"),  # right for 2 to 9 ranks
    ("lab04.t2", rule("(r - s) % D", "(r + 1 - s - D // 40) % D"), "published-ring", "40 ranks"),  # right for 2 to 39 ranks
    ("lab04.t2", rule("(r - s + s // (D - 2)) % D"), "added-twice", "step 2", "reduce-scatter"),
    ("lab04.t2", rule("(r - s) / D"), "true-division"),
    ("lab04.t2", rule("2r"), "not-a-formula", "2 * r"),
    ("lab04.t2", rule("(r - s"), "incomplete-formula"),
    ("lab04.t2", rule("(r - s) % N"), "unknown-name", "'N'", "D, r, s"),
    ("lab04.t2", rule("(r - s) ** D"), "not-arithmetic"),
    ("lab04.t2", rule("exit()"), "not-arithmetic"),
    ("lab04.t2", rule("r.real"), "not-a-formula"),
    ("lab04.t2", rule("[r for r in r]"), "not-a-formula"),
    ("lab04.t2", rule("r" * 201), "too-long", "200"),
    ("lab04.t2", rule(""), "incomplete-formula", "''"),
    ("lab04.t2", rule(3), "not-text"),
    ("lab04.t2", {"reduce-scatter": "r"}, "wrong-shape"),
    ("lab04.t2", "(r - s) % D", "wrong-shape"),
    ("lab04.t3", [7, 3.5e9, 112], "reduce-scatter-alone"),
    ("lab04.t3", [16, 4e9, 128], "d-hops"),
    ("lab04.t3", [6, 12e9, 48], "tree"),
    ("lab04.t3", [8, 2e9, 64], "ranks-not-steps"),
    ("lab04.t3", [9, 2e9, 64], "wrong-messages", "9 messages"),
    ("lab04.t3", [14, 4e9, 112], "limit-of-many-ranks"),
    ("lab04.t3", [14, 1.75e9, 112], "one-half"),
    ("lab04.t3", [14, 2e9, 112], "gradients-once"),
    ("lab04.t3", [14, 28e9, 112], "not-cut"),
    ("lab04.t3", [14, 3.5, 112], "gigabytes"),
    ("lab04.t3", [14, 3e9, 112], "wrong-bytes", "1.5"),
    ("lab04.t3", [14, 3.5e9, 14], "wrong-sum", "14"),
    ("lab04.t3", [13.5, 3.5e9, 108], "not-a-whole-number", "13.5"),
    ("lab04.t3", [14, 3.5e9], "wrong-length"),
    ("lab04.t4", 1.42, "megabytes"),
    ("lab04.t4", 120 * 5e-6 * 25e9 / (6 - 126 / 64), "tree-one-way"),
    ("lab04.t4", 51 * 5e-6 * 25e9 / (12 - 63 / 64), "one-half"),
    ("lab04.t4", 116 * 5e-6 * 25e9 / 10, "d-steps"),
    ("lab04.t4", 116 * 5e-6 * 25e9 / (12 - 126 / 64), "d-steps"),
    ("lab04.t4", 114 * 5e-6 * 25e9 / 10, "all-bytes"),
    ("lab04.t4", 1.449e6 * 1.002, "wrong-value", "do not take equally long"),
    ("lab04.t4", 1420.5607, "kilobytes"),
    ("lab04.t4", 1_420_560.7 * 8, "bits"),
    ("lab04.t4", 1_420_560.7 / 8, "bits-a-second", "25 gigabytes"),
    ("lab04.t4", (126 - 8.3178) * 5e-6 * 25e9 / (8.3178 - 126 / 64), "natural-logarithm", "6 for 64"),
    ("lab04.t4", 114 * 5e-6 * 25e9 / (2 - 126 / 64), "tree-bytes-once", "12 messages"),
    ("lab04.t4", 1e6, "wrong-value", "1,000,000 bytes", "708.8", "540.0"),
    ("lab04.t4", -1e6, "wrong-value", "60.0"),
    ("lab04.t4", "1.4 MB", "not-a-number"),
    (
        "lab04.t5",
        named(B=FOUND["C"]),
        "another-fault",
        "A, C, D, E",
        "ring B",
        FOUND["C"],
        "chunk 0 of rank 0",
        "the numbers of rank 3 alone",
    ),
    ("lab04.t5", named(C=FOUND["B"]), "another-fault", "ring C", FOUND["B"], "chunk 0 of rank 0", "the numbers of rank 0 alone"),
    ("lab04.t5", named(A="no division"), "another-fault", "ring A", "'no division'", "chunk 2 of rank 0"),
    ("lab04.t5", named(E=FOUND["A"]), "another-fault", "ring E", "ranks 0 (2 times), 1, 2 and 3"),
    ("lab04.t5", named(D="reduce-scatter counts"), "unknown-name", "A, B, C, E", "ring D", "'reduce-scatter counts up'"),
    ("lab04.t5", named(D="", B=FOUND["C"]), "another-fault", "A, C, E", "ring B", "no answer yet: D"),
    ("lab04.t5", named(D=""), "unanswered", "A, B, C, E", "no answer yet: D"),
    ("lab04.t5", {"A": FOUND["A"]}, "unanswered", "right so far: A", "B, C, D, E"),
    ("lab04.t5", dict.fromkeys(LETTERS, "no division"), "another-fault", "no ring is right"),
    ("lab04.t5", {"F": FOUND["A"]}, "wrong-shape"),
    ("lab04.t5", {"A": 3}, "not-text"),
    ("lab04.t6", PASSING | {"equal": "ABCD"}, "equal-failed", "bytes, same, mean", "ring A"),
    ("lab04.t6", PASSING | {"equal": "BC"}, "equal-passed", "ring D"),
    ("lab04.t6", PASSING | {"bytes": "ABCDE"}, "bytes-failed", "ring A"),
    ("lab04.t6", PASSING | {"bytes": "none"}, "bytes-passed", "ring B"),
    ("lab04.t6", PASSING | {"same": "A"}, "same-failed", "ring A"),
    ("lab04.t6", PASSING | {"mean": "E"}, "mean-failed", "ring E"),
    ("lab04.t6", PASSING | {"mean": "F"}, "not-letters", "equal, bytes, same", "'F'"),
    ("lab04.t6", PASSING | {"mean": ""}, "unanswered", "equal, bytes, same", "no answer yet: mean"),
    ("lab04.t6", PASSING | {"mean": None, "bytes": []}, "bytes-passed", "equal, same", "ring B", "no answer yet: mean"),
    ("lab04.t6", dict.fromkeys(PASSING, "none"), "equal-passed", "same, mean", "ring B"),
    ("lab04.t6", {"equal": "BCD"}, "unanswered", "right so far: equal"),
    ("lab04.t6", dict.fromkeys(PASSING, "ABCDE"), "equal-failed", "no check is right"),
    ("lab04.t6", "BCD", "wrong-shape"),
    ("lab04.t7", rings.published, "published-ring", "for 2 ranks with", "in step 1 rank 0", "not the whole sum of chunk 1"),
    ("lab04.t7", rings.published_divided_first, "published-ring", "rank 0 alone"),
    ("lab04.t7", rings.adds_twice, "all-gather-adds", "for 2 ranks"),
    ("lab04.t7", rings.counts_up, "counts-up", "for 3 ranks"),
    ("lab04.t7", rings.backwards, "wrong-direction", "for 3 ranks"),
    ("lab04.t7", rings.as_received, "by-receiver", "for 2 ranks"),
    ("lab04.t7", rings.undivided, "no-division", "for 2 ranks"),
    ("lab04.t7", rings.another_start, "another-start", "chunk 1 with the numbers of rank 0 alone, not its own chunk 0"),
    ("lab04.t7", rings.long_chunks_last, "another-chunk", "2 ranks with 5 numbers", "step 0 rank 0 sends 2 numbers", "array_split"),
    ("lab04.t7", rings.steps_in_two_lists, "two-lists", "1 rank", "join the two"),
    ("lab04.t7", rings.steps_in_two_lists_from_two_on, "two-lists", "2 ranks"),
    ("lab04.t7", rings.OneListForAllCalls(), "keeps-its-state", "1 rank", "2 ranks", "earlier calls"),
    ("lab04.t7", rings.with_addresses, "ragged", "rank 0 in step 0 is an array of numbers, not (0, 1, "),
    ("lab04.t7", rings.adds_in_the_last_step_alone, "wrong-sum", "3 ranks", "in step 1 rank 0", "chunk 2"),
    ("lab04.t7", rings.starts_with_zeros, "wrong-start", "step 0 rank 0 sends zeros, not its own chunk 0"),
    ("lab04.t7", rings.one_half, "wrong-steps", "messages of 1 step", "2 ranks has 2"),
    ("lab04.t7", rings.whole_rows, "not-cut", "2 ranks with"),
    ("lab04.t7", rings.equal_chunks, "wrong-bytes", "2 ranks with 5 numbers"),
    ("lab04.t7", rings.mean_with_zeros, "invented-messages", "the averages are right", "rank 0 sends zeros", "chunk 0"),
    ("lab04.t7", rings.mean_with_chunks_of_the_mean, "invented-messages", "the averages are right", "ranks 0 and 1"),
    ("lab04.t7", rings.mean_beside_right_messages, "invented-averages", "3 ranks", "last bits", "chunks that arrived"),
    ("lab04.t7", rings.each_in_its_own_order, "ranks-differ", "ranks 0 and", "last bits"),
    ("lab04.t7", rings.adds_own_again, "not-passed-on", "3 ranks", "in step 3 rank 0"),
    ("lab04.t7", rings.sums_one_short, "wrong-whole-sum", "in step 1 rank 0", "not the whole sum of chunk 1"),
    ("lab04.t7", rings.ragged, "ragged", "2 ranks"),
    ("lab04.t7", rings.texts, "not-a-number", "1 rank"),
    ("lab04.t7", rings.flat_messages, "not-a-list", "2 ranks"),
    ("lab04.t7", rings.one_message_a_step, "wrong-messages", "step 0 has 1 message"),
    ("lab04.t7", rings.forgets_the_last, "wrong-mean", "3 ranks", "rank 2"),
    ("lab04.t7", rings.re_sums, "invented-messages", "as it has just received it"),
    ("lab04.t7", rings.changes_values, "changes-its-argument", "2 ranks"),
    ("lab04.t7", rings.without_copies, "aliased", "2 ranks"),
    ("lab04.t7", rings.forwards_without_a_copy, "aliased-ranks", "3 ranks", "result[1][2][0] and result[1][3][1]"),
    ("lab04.t7", rings.adds_in_place, "changed-later", "2 ranks", "messages[0][0] has changed after it was sent", "send a copy"),
    ("lab04.t7", rings.messages_first, "messages-first", "averages come first"),
    ("lab04.t7", rings.by_rank, "ranks-first", "1 rank", "messages[s][r]"),
    ("lab04.t7", rings.by_rank_from_two_on, "ranks-first", "2 ranks", "messages[s][r]"),
    ("lab04.t7", rings.by_rank_from_three_on, "ranks-first", "3 ranks"),
    ("lab04.t7", rings.one_row_for_all, "one-row", "2 ranks"),
    ("lab04.t7", rings.in_single_precision, "wrong-dtype", "float32"),
    ("lab04.t7", rings.with_nan, "not-finite", "averages"),
    ("lab04.t7", rings.averages_alone, "not-two-values"),
    ("lab04.t7", rings.one_row, "wrong-averages", "(1,)", "(1, 1)"),
    ("lab04.t7", rings.as_matrices, "wrong-shape", "rank 0 in step 0"),
    ("lab04.t7", rings.for_the_examples, "wrong-averages"),
    ("lab04.t7", "ring_all_reduce", "not-a-function"),
]


# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab04.t1", (7, 0, 1, 2, 3, 4, 5, 6)),
    ("lab04.t1", np.roll(np.arange(8.0), 1)),
    ("lab04.t2", rule("(r-s+D)%D", "(r + D + 1 - s) % D")),
    ("lab04.t2", rule("(r - 1 - s) % D", "(r - s) % D")),  # chunk c starts at rank c + 1: another ring, as right
    ("lab04.t2", rule("  (r + (D - 1) * s) % D\n")),
    ("lab04.t2", rule("r - s - (r - s) // D * D")),
    ("lab04.t2", rule("-(s - r) % D")),
    ("lab04.t3", (np.int64(14), 3_500_000_000, 112.0)),
    ("lab04.t4", 1_420_560.7),
    ("lab04.t4", 1.42e6),
    ("lab04.t5", {letter: f" {name.capitalize()} " for letter, name in FOUND.items()}),
    ("lab04.t5", {letter: FOUND[letter] for letter in "DBECA"}),
    ("lab04.t6", {"equal": "d, b, c", "bytes": ["B", "D", "E"], "same": "None", "mean": "NONE"}),
    ("lab04.t6", {"equal": {"B", "C", "D"}, "bytes": ("E", "D", "B"), "same": [], "mean": set()}),
    ("lab04.t7", rings.in_one_buffer),
    ("lab04.t7", rings.divided_first),
    ("lab04.t7", rings.divided_between),
    ("lab04.t7", rings.divided_by_a_factor),
]


@given(junk, junk)
def test_any_rule_gets_feedback(scatter: Any, gather: Any) -> None:
    assert check("lab04.t2", rule(scatter, gather)).messages


# ---- the build ----


@in_turn("seed", range(6))
def test_a_right_ring_passes_the_cases_of_another_seed(seed: int) -> None:
    written = (rings.in_one_buffer, rings.divided_first, rings.divided_between, rings.divided_by_a_factor)[seed % 4]
    assert check("lab04.t7", written, seed=seed).passed


def test_another_seed_tries_other_numbers_and_sizes() -> None:
    def drawn(seed: int) -> list[Any]:
        return list(TASKS["lab04.t7"].instance(None).data.cases(np.random.default_rng(seed)))

    shapes = [{case.arguments[0].shape for case in drawn(seed)} for seed in range(20)]
    assert len(set(map(frozenset, shapes))) == 20
    for found in shapes:
        assert {*range(1, 9)} < {ranks for ranks, _ in found} <= {*range(1, 20)}
        assert any(size % ranks for ranks, size in found if size > ranks)
        assert any(0 < size < ranks for ranks, size in found)
        assert any(size == 0 for _, size in found)
    assert (drawn(1)[0].arguments[0] != drawn(2)[0].arguments[0]).all()


def test_a_rounded_average_and_the_right_one_are_shown_with_digits_that_differ() -> None:
    def rounded(values: Any) -> Any:
        averages, messages = rings.in_one_buffer(values)
        return averages.round(6), messages

    feedback = check("lab04.t7", rounded)
    shown = re.search(r"ends with (\S+) for number \d+, and the mean is (\S+)$", feedback.messages[0])
    assert feedback.code == "wrong-mean"
    assert shown
    assert shown[1] != shown[2]


def test_a_right_ring_sends_the_messages_of_the_librarys_ring() -> None:
    values = np.random.default_rng(3).integers(-9, 9, (5, 13)).astype(float)
    averages, messages = rings.in_one_buffer(values)
    ring = ring_all_reduce(values)
    np.testing.assert_allclose(averages, ring.values, rtol=1e-6)
    sent = [8 * sum(len(step[rank]) for step in messages) for rank in range(5)]
    assert sent == (2 * ring.payload_bytes).tolist()
    assert [[4 * len(message) for message in step] for step in messages] == [hop.nbytes.tolist() for hop in ring.hops]


@in_turn("values", [[[1, 2, 3], [10, 20, 30]], [[1], [10], [100]]])
def test_the_worked_solution_gives_the_examples_of_the_text(values: list[list[int]]) -> None:
    array = np.array(values, dtype=float)
    assert same(solutions_of("lab04")["lab04.t7"](array), rings.for_the_examples(array))
    averages, messages = rings.for_the_examples(array)
    (text,) = (cell.source for cell in lab_cells("lab04") if "Task 7" in cell.source)
    example = text.partition(f"ring_all_reduce({values})\n")[2].partition("\n\n")[0].partition("```")[0]
    said = [ast.literal_eval(array) for array in re.findall(r"\[+[^\]]*\](?:, \[[^\]]*\])*\]?", example)]
    assert said == [averages.tolist(), *(message.tolist() for sent in messages for message in sent)]


def test_a_function_without_code_is_nothing_handed_in() -> None:
    assert check("lab04.t7", rings.unfinished).code == "nothing-handed-in"


@in_turn("code, program", [("changed-later", rings.adds_and_divides_in_place), ("messages-first", rings.lists_of_messages_first)])
def test_a_mistake_is_found_in_another_form(code: str, program: Any) -> None:
    assert check("lab04.t7", program).code == code


@pytest.mark.slow
@in_turn("name", [twist.name for twist in BUILD.twists])
def test_a_ring_is_judged_in_the_words_of_its_own_way(name: str) -> None:
    mine = BUILD.with_twist(next(twist for twist in BUILD.twists if twist.name == name))
    to, first = WAYS[name]
    receiver, start, forgotten = f"rank r {'+' if to > 0 else '-'} 1", plus("chunk r", first), mine.check(ring(1, 0))
    assert (forgotten.code, forgotten.messages[1]) == ("twist-missed", WITHOUT_THE_TWIST)
    wrong = {
        "wrong-direction": (ring(-to, first), f"rank r sends to {receiver}"),
        "another-start": (ring(to, first + 1), f"begins with {start}"),
        "no-division": (lambda values: (ring(to, first)(values)[0] * len(values), ring(to, first)(values)[1]), "divide"),
        "invented-averages": (lambda values: (values.mean(axis=0) + 0 * values, ring(to, first)(values)[1]), "chunks that arrived"),
    }
    for code, (program, words) in wrong.items():
        feedback = mine.check(program)
        assert "next rank" not in " ".join(feedback.messages)
        if feedback.code != "twist-missed":  # the text's ring is the one that turns the other way, or begins with another chunk
            assert (feedback.code, words in " ".join(feedback.messages[:2])) == (code, True)
            assert feedback.messages[-2:] == (f"in your task, {mine.twist.sentence}", mine.example)


def test_the_example_of_a_ring_is_what_a_ring_of_its_way_returns() -> None:
    (given,) = BUILD.examples[0].arguments
    for twist in BUILD.twists:
        averages, messages = ring(*WAYS[twist.name])(given)
        lists = averages.tolist(), [[message.tolist() for message in sent] for sent in messages]
        assert BUILD.with_twist(twist).example.endswith(f"returns {lists}")


# ---- the rings ----


rules_of_a_ring = st.tuples(*[st.sampled_from(["(r - s) % D", "(r + 1 - s) % D", "(r + s) % D", "(2 * r - s) % D", "r", "s", "D - 1 - r",
                                               "(r - 1 - s) % D", "(r - s) % 5", "(r + 7 * s) % D"])] * 2)  # fmt: skip


@given(rules_of_a_ring, st.integers(2, 9))
def test_the_proof_that_a_ring_is_right_agrees_with_running_it(rules: tuple[str, str], ranks: int) -> None:
    formulas = [formula_of(text, ("r", "s", "D"), "the rule") for text in rules]
    scatter, gather = ((lambda rank, step, ranks, formula=formula: formula(r=rank, s=step, D=ranks)) for formula in formulas)
    plan = RingPlan(scatter, gather)
    assert is_right(plan, ranks) == (first_fault(plan, ranks) is None)


@in_turn("ranks", [3, 4])
def test_no_other_start_of_the_all_gather_is_right(ranks: int) -> None:
    for ahead in range(ranks):
        plan = RingPlan(gather=lambda rank, step, ranks, ahead=ahead: (rank + ahead - step) % ranks)
        assert is_right(plan, ranks) == (first_fault(plan, ranks) is None) == (ahead == 1)


def by_hand(ranks: int, chunk: int) -> tuple[Counter[int], ...]:
    """The ranks whose numbers are in a chunk after the reduce-scatter of a right ring, for each rank, found by following the chunk."""
    held = [Counter({rank: 1}) for rank in range(ranks)]
    for hop in range(1, ranks):
        held[(chunk + hop) % ranks] += held[(chunk + hop - 1) % ranks]
    return tuple(held)


@in_turn("ranks", range(2, 9))
def test_a_right_ring_holds_what_a_walk_with_each_chunk_says(ranks: int) -> None:
    steps = contributions(RingPlan(), ranks)
    assert len(steps) == 2 * ranks - 1
    assert (steps[-1] == 1).all()
    for chunk in range(ranks):
        for rank, counts in enumerate(by_hand(ranks, chunk)):
            assert Counter(dict(enumerate(steps[ranks - 1][rank, chunk].tolist()))) == counts


@in_turn("ranks", range(2, 9))
def test_ring_b_is_the_published_one(ranks: int) -> None:
    values = np.random.default_rng(ranks).standard_normal((ranks, 3 * ranks)).astype(np.float32)
    ring = faulty_ring("B", values)
    np.testing.assert_allclose(ring.values, published.published_ring(values, "FP32").values, rtol=1e-6)
    assert ring.messages == len(published.published_ring(values, "FP32").hops) == len(ring_all_reduce(values).hops)


def test_every_fault_shows_and_no_two_look_alike() -> None:
    values = np.sqrt(np.arange(1.0, 33)).reshape(4, 8)
    results = [faulty_ring(letter, values).values for letter in LETTERS]
    for place, result in enumerate(results):
        assert not np.allclose(result, values.mean(axis=0))
        assert not any(np.allclose(result, other) for other in results[:place])
    assert len(set(FOUND.values())) == 5


def test_a_faulty_ring_leaves_its_input_and_refuses_what_it_cannot_cut() -> None:
    values = np.arange(8.0).reshape(2, 4)
    before = values.copy()
    faulty_ring("A", values)
    assert (values == before).all()
    for uneven in ([1, 2], [[1, 2, 3], [4, 5, 6]], [[1, 2]], np.zeros((65, 65))):
        with refusal("wrong-shape", "values"):
            faulty_ring("A", uneven)
    with refusal("not-a-number", "values"):
        faulty_ring("A", [["a", "b"], ["c", "d"]])
    with refusal("empty", "values"):
        faulty_ring("A", [])
    with refusal("unknown-name", "'F'"):
        faulty_ring("F", values)


@given(junk, junk)
def test_junk_gets_a_sentence(letter: Any, values: Any) -> None:
    outcome(faulty_ring, letter, values)


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 50))
def test_a_formula_counts_as_python_does(r: int, s: int, D: int) -> None:  # noqa: N803 - the letter of the lab
    for text, value in [("(r - s) % D", (r - s) % D), ("-r//D + 2*s", -r // D + 2 * s), ("+ (3 - r) * (s % D)", (3 - r) * (s % D))]:
        assert formula_of(text, ("r", "s", "D"), "the rule")(r=r, s=s, D=D) == value


@in_turn(
    "text, code",
    [
        ("open", "unknown-name"),
        ("print(1)", "not-arithmetic"),
        ("r if s else D", "not-arithmetic"),
        ("r == s", "not-a-formula"),
        ("r and s", "not-arithmetic"),
        ("not r", "not-arithmetic"),
        ("lambda: r", "not-a-formula"),
        ("r, s", "not-a-formula"),
        ("~r", "not-a-formula"),
        ("r << s", "not-a-formula"),
        ("1 .real", "not-a-formula"),
        ("True", "not-arithmetic"),
        ("abs(r)", "not-arithmetic"),
        ("0x1", "not-a-formula"),
        ("1e9", "not-a-formula"),
    ],
)
def test_nothing_but_a_formula_is_run(text: str, code: str) -> None:
    with refusal(code, "the rule"):
        formula_of(text, ("r", "s", "D"), "the rule")


def test_contributors_are_named_in_words() -> None:
    assert contributors(np.array([0, 3])) == "the numbers of rank 1 (3 times) alone"
