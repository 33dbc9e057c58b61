"""Lab 4: every right answer passes, each typical wrong one gets a sentence of its own, and the rings are what they say."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from misuse import junk, outcome

from hybridlab import HybridLabError, published
from hybridlab.collectives import ring_all_reduce
from hybridlab.course.tasks import check
from hybridlab.course.tasks.rings import FAULTS, LETTERS, RingPlan, fault_of, faulty_ring, ranks_in, whose
from hybridlab.course.tasks.rules import Formula

RIGHT = {"reduce-scatter": "(r - s) % D", "all-gather": "(r + 1 - s) % D"}
FOUND = {letter: next(name for name, plan in FAULTS.items() if plan is fault_of(letter)) for letter in LETTERS}
PASSING = {"equal": "BCD", "bytes": "BDE", "same": "none", "mean": "none"}


def rule(scatter: Any, gather: Any = "(r + 1 - s) % D") -> dict[str, Any]:
    return {"reduce-scatter": scatter, "all-gather": gather}


def named(**faults: str) -> dict[str, str]:
    return FOUND | faults


# Task, wrong answer, what its sentence must say.
WRONG: list[tuple[str, Any, str]] = [
    ("lab04.t1", [0, 1, 2, 3, 4, 5, 6, 7], "never comes back there"),
    ("lab04.t1", [1, 2, 3, 4, 5, 6, 7, 0], "the first that chunk c comes to"),
    ("lab04.t1", [2, 3, 4, 5, 6, 7, 0, 1], "wrong way"),
    ("lab04.t1", [7, 0, 1, 2, 3, 4, 5, 5], "chunk 7 is not whole on rank 5"),
    ("lab04.t1", [8, 0, 1, 2, 3, 4, 5, 6], "chunk 0 is not whole on rank 8"),
    ("lab04.t1", [7, 0, 1], "but there are 3"),
    ("lab04.t2", rule("(r - s) % D", "(r - s) % D"), "rank 0 sends chunk 0 with the numbers of rank 0 alone, no whole sum"),
    ("lab04.t2", rule("(r + s) % D"), "in step 0 of the all-gather rank 0 sends chunk 1 with the numbers of ranks 0 and 3"),
    ("lab04.t2", rule("r"), "chunk 3 of rank 0 holds the numbers of ranks 0 and 3 (2 times)"),
    ("lab04.t2", rule("0"), "after step 1 of the reduce-scatter chunk 0 of rank 0 holds the numbers of ranks 0, 2 and 3 (2 times)"),
    ("lab04.t2", rule("(r - s) % D", "(r + 1) % D"), "in the end chunk 2 of rank 0 holds the numbers of ranks 0, 2 and 3"),
    ("lab04.t2", rule("(r - s) % D", "(r + 1 + s) % D"), "in step 1 of the all-gather rank 0 sends chunk 2"),
    ("lab04.t2", rule("r - s"), "rank 0 sends chunk -1, but there are chunks 0 to 3"),
    ("lab04.t2", rule("(r - s) % 4", "(r + 1 - s) % 4"), "with 2 ranks: in step 0 of the all-gather rank 1 sends chunk 2"),
    ("lab04.t2", rule("(r - s) % (D - 4)"), "divides by zero for r = 0, s = 0, D = 4"),
    ("lab04.t2", rule("(r + 11 * s) % D"), "with 5 ranks: "),  # right for 2, 3, 4, 6 and 12 ranks
    ("lab04.t2", rule("(r - s + s // (D - 2)) % D"), "after step 2 of the reduce-scatter chunk"),
    ("lab04.t2", rule("(r - s) / D"), "take // or %"),
    ("lab04.t2", rule("2r"), "write 2 * r"),
    ("lab04.t2", rule("(r - s"), "no complete formula"),
    ("lab04.t2", rule("(r - s) % N"), "has a name 'N': it knows D, r, s"),
    ("lab04.t2", rule("(r - s) ** D"), "made of names, whole numbers"),
    ("lab04.t2", rule("exit()"), "made of names, whole numbers"),
    ("lab04.t2", rule("r.real"), "cannot be read"),
    ("lab04.t2", rule("[r for r in r]"), "cannot be read"),
    ("lab04.t2", rule("r" * 201), "200 are plenty"),
    ("lab04.t2", rule(""), "no complete formula: ''"),
    ("lab04.t2", rule(3), "is text such as"),
    ("lab04.t2", {"reduce-scatter": "r"}, "the answer is"),
    ("lab04.t2", "(r - s) % D", "the answer is"),
    ("lab04.t3", [7, 3.5e9, 112], "the reduce-scatter alone"),
    ("lab04.t3", [16, 4e9, 128], "D-1 hops, not D"),
    ("lab04.t3", [6, 12e9, 48], "what a tree needs"),
    ("lab04.t3", [8, 2e9, 64], "8 is the number of ranks"),
    ("lab04.t3", [9, 2e9, 64], "does not send 9 messages"),
    ("lab04.t3", [14, 4e9, 112], "2S is the limit"),
    ("lab04.t3", [14, 1.75e9, 112], "one half"),
    ("lab04.t3", [14, 2e9, 112], "each rank sends 14 chunks"),
    ("lab04.t3", [14, 28e9, 112], "no message carries all"),
    ("lab04.t3", [14, 3.5, 112], "give bytes"),
    ("lab04.t3", [14, 3e9, 112], "1.5 times its gradients"),
    ("lab04.t3", [14, 3.5e9, 14], "all ranks together do not send 14"),
    ("lab04.t3", [14, 3.5e9], "list of 3 numbers"),
    ("lab04.t4", 1.42, "this is in MB"),
    ("lab04.t4", 120 * 5e-6 * 25e9 / (6 - 126 / 64), "up and down again"),
    ("lab04.t4", 51 * 5e-6 * 25e9 / (12 - 63 / 64), "two halves"),
    ("lab04.t4", 116 * 5e-6 * 25e9 / 10, "not 2D"),
    ("lab04.t4", 1e6, "with 1,000,000 bytes the ring takes 708.8 microseconds, the tree 540.0"),
    ("lab04.t4", -1e6, "the tree 60.0: they do not take equally long"),
    ("lab04.t4", "1.4 MB", "a number such as"),
    (
        "lab04.t5",
        named(B=FOUND["C"]),
        "ring B: 'reduce-scatter one step short' would leave in chunk 0 of rank 0 the numbers of rank 3 alone",
    ),
    (
        "lab04.t5",
        named(C=FOUND["B"]),
        "ring C: 'all-gather starts at chunk r' would leave in chunk 0 of rank 0 the numbers of rank 0 alone",
    ),
    ("lab04.t5", named(A="no division"), "ring A: with 'no division' all sums would be whole, but chunk 2 of rank 0"),
    ("lab04.t5", named(E=FOUND["A"]), "there are the numbers of ranks 0 (2 times), 1, 2 and 3"),
    ("lab04.t5", named(D="reduce-scatter counts"), "did you mean 'reduce-scatter counts up'"),
    ("lab04.t5", named(D=""), "unknown fault of ring D"),
    ("lab04.t5", {"A": FOUND["A"]}, "a fault for each of the rings"),
    ("lab04.t6", PASSING | {"equal": "ABCD"}, "equal: ring A does not pass it; its ranks hold different numbers"),
    ("lab04.t6", PASSING | {"equal": "BC"}, "equal: ring D passes it"),
    ("lab04.t6", PASSING | {"bytes": "ABCDE"}, "bytes: ring A does not pass it; it leaves out a step"),
    ("lab04.t6", PASSING | {"bytes": "none"}, "bytes: ring B passes it; it sends all its messages"),
    ("lab04.t6", PASSING | {"same": "A"}, "same: ring A does not pass it; count how many ranks"),
    ("lab04.t6", PASSING | {"mean": "E"}, "mean: ring E does not pass it"),
    ("lab04.t6", PASSING | {"mean": "F"}, 'the letters A to E, or "none"'),
    ("lab04.t6", PASSING | {"mean": ""}, 'the letters A to E, or "none"'),
    ("lab04.t6", dict.fromkeys(PASSING, "none"), "equal: ring B passes it"),
    ("lab04.t6", {"equal": "BCD"}, "the answer has letters"),
]


def test_the_published_rule_is_recognised() -> None:
    messages = check("lab04.t2", rule("(r - s) % D", "(r - s) % D")).messages
    assert "this is the published ring" in messages[-1]
    assert not any("published" in message for message in check("lab04.t2", rule("(r + s) % D")).messages)


# Task, another way to write its right answer.
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
    ("lab04.t6", {"equal": "d, b, c", "bytes": ["B", "D", "E"], "same": "None", "mean": "NONE"}),
]


@given(junk, junk)
def test_any_rule_gets_feedback(scatter: Any, gather: Any) -> None:
    assert check("lab04.t2", rule(scatter, gather)).messages


# ---- the rings ----


def by_hand(ranks: int, chunk: int) -> tuple[Counter[int], ...]:
    """Who is in a chunk on each rank of a right ring after the reduce-scatter, by walking with the chunk."""
    held = [Counter({rank: 1}) for rank in range(ranks)]
    for hop in range(1, ranks):
        held[(chunk + hop) % ranks] += held[(chunk + hop - 1) % ranks]
    return tuple(held)


@pytest.mark.parametrize("ranks", range(2, 9))
def test_a_right_ring_holds_what_a_walk_with_each_chunk_says(ranks: int) -> None:
    steps = whose(RingPlan(), ranks)
    assert len(steps) == 2 * ranks - 1
    assert (steps[-1] == 1).all()
    for chunk in range(ranks):
        for rank, counts in enumerate(by_hand(ranks, chunk)):
            assert Counter(dict(enumerate(steps[ranks - 1][rank, chunk].tolist()))) == counts


@pytest.mark.parametrize("ranks", range(2, 9))
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
    for wrong in ([1, 2], [[1, 2, 3], [4, 5, 6]], [[1, 2]], [["a", "b"], ["c", "d"]], np.zeros((65, 65)), []):
        with pytest.raises(HybridLabError, match="values"):
            faulty_ring("A", wrong)
    with pytest.raises(HybridLabError, match="unknown ring 'F'"):
        faulty_ring("F", values)


@given(junk, junk)
def test_junk_gets_a_sentence(letter: Any, values: Any) -> None:
    outcome(faulty_ring, letter, values)


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 50))
def test_a_formula_counts_as_python_does(r: int, s: int, D: int) -> None:  # noqa: N803 - the letter of the lab
    for text, value in [("(r - s) % D", (r - s) % D), ("-r//D + 2*s", -r // D + 2 * s), ("+ (3 - r) * (s % D)", (3 - r) * (s % D))]:
        assert Formula(text, {"r", "s", "D"}, "the rule")(r=r, s=s, D=D) == value


def test_nothing_but_a_formula_is_run() -> None:
    for text in [
        "open",
        "print(1)",
        "r if s else D",
        "r == s",
        "r and s",
        "not r",
        "lambda: r",
        "r, s",
        "~r",
        "r << s",
        "1 .real",
        "True",
        "0x1",
        "1e9",
    ]:
        with pytest.raises(HybridLabError, match="the rule"):
            Formula(text, {"r", "s", "D"}, "the rule")


def test_whose_numbers_there_are_is_told_in_words() -> None:
    assert ranks_in(np.array([0, 3])) == "the numbers of rank 1 (3 times) alone"
