"""Test lab 7's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from honest import honest
from solutions import lab_cells, solutions_of

from hybridlab import INT8, HybridLabError, build, published
from hybridlab.course.labs.lab07.executors import toy_backward, toy_forward
from hybridlab.course.labs.lab07.ring_tests import MOST_NUMBERS, MOST_RANKS, PLACES, ring_of, rings, verdict_on
from hybridlab.course.labs.lab07.ring_tests import RIGHT as RIGHT_RINGS
from hybridlab.course.labs.lab07.ring_tests import WRONG as WRONG_RINGS
from hybridlab.course.tasks import TASKS, Case, check
from hybridlab.training import train

(EXECUTOR, RING_TEST) = (
    next(cell.source.partition("\n\ncheck")[0] for cell in lab_cells("lab07") if "solution" in cell.tags and f'"{key}"' in cell.source)
    for key in ("lab07.t1", "lab07.t6")
)


def changed(source: str, *changes: tuple[str, str]) -> Callable[..., Any]:
    """Return the worked solution with some of its code replaced by what a student could write."""
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    names: dict[str, Any] = {"np": np}
    exec(source, names)  # noqa: S102 - a cell of our own lab
    function: Callable[..., Any] = names["solution"]
    return function


def executor(*changes: tuple[str, str]) -> Callable[..., Any]:
    return changed(EXECUTOR, *changes)


def one_after_the_other(orders: Any, forward: Any, backward: Any, inputs: Any) -> Any:
    """Run each microbatch through all stages and back: the sums are right, but the order is not that of the lines."""
    loss, sums = 0.0, [0.0] * len(orders)
    for microbatch, value in enumerate(inputs):
        kept = []
        for stage in range(len(orders)):
            value, left = forward(stage, microbatch, value)
            kept.append(left)
        loss, gradient = loss + value, 1.0
        for stage in reversed(range(len(orders))):
            gradient, found = backward(stage, microbatch, gradient, kept.pop())
            sums[stage] = sums[stage] + found
    return loss, sums


def line_by_line(orders: Any, forward: Any, backward: Any, inputs: Any, missing: Any = 1.0) -> Any:
    """Run one device after the other: with two devices the first backward finds no gradient and takes another, or raises an error."""
    outputs, gradients, kept, loss, sums = {}, {}, {}, 0.0, [0.0] * len(orders)
    for stage, line in enumerate(orders):
        for name in line.split():
            microbatch = int(name.replace("B", "F").split("F")[1])
            if "F" in name:
                value = outputs[stage - 1, microbatch] if stage else inputs[microbatch]
                outputs[stage, microbatch], kept[stage, microbatch] = forward(stage, microbatch, value)
            else:
                gradient = 1.0 if stage == len(orders) - 1 else gradients.get((stage + 1, microbatch), missing) / 1
                gradients[stage, microbatch], found = backward(stage, microbatch, gradient, kept.pop((stage, microbatch)))
                sums[stage] = sums[stage] + found
        if stage == len(orders) - 1:
            loss = sum(outputs[stage, microbatch] for microbatch in range(len(inputs)))
    return loss, sums


def with_one_slot(orders: Any, forward: Any, backward: Any, inputs: Any) -> Any:
    """Keep one message for each stage, so that a second one overwrites the first."""
    lines, done = [line.split() for line in orders], set()
    arrived, returned, kept = [None] * len(orders), [None] * len(orders), {}
    loss, sums, last = 0.0, [0.0] * len(orders), len(orders) - 1
    while any(lines):
        for stage, line in enumerate(lines):
            while line:
                kind, microbatch = line[0][len(str(stage))], int(line[0][1 + len(str(stage)) :])
                need = f"{stage - 1}F{microbatch}" if kind == "F" else f"{stage + 1}B{microbatch}"
                if need not in done and (stage if kind == "F" else stage < last):
                    break
                done.add(line.pop(0))
                if kind == "F":
                    value, kept[stage, microbatch] = forward(stage, microbatch, arrived[stage] if stage else inputs[microbatch])
                    if stage < last:
                        arrived[stage + 1] = value
                    else:
                        loss += value
                else:
                    gradient = returned[stage] if stage < last else 1.0
                    value, found = backward(stage, microbatch, gradient, kept.pop((stage, microbatch)))
                    sums[stage] = sums[stage] + found
                    if stage:
                        returned[stage - 1] = value
    return loss, sums


SUM = "sums[stage] = sums[stage] + gradient"
RETURN = "return loss, sums"
LINES = "lines = [line.split() for line in orders]"
FIRST = 'loss, mailbox[f"{stage}B{m}"] = loss + value, 1.0'


def only_examples(orders: Any, forward: Any, backward: Any, inputs: Any) -> Any:
    """Return the results of the examples."""
    return (10.0, [np.array(5.0)]) if len(orders) == 1 else (66.0, [np.array(33.0), np.array(22.0)])


def compared(*shapes: tuple[int, int], good: Callable[[Any, Any], Any] = lambda found, mean: np.allclose(found, mean)) -> Any:
    """Return a test of a ring that tries arrays of these shapes."""

    def ring_is_right(ring: Any) -> bool:
        for shape in shapes:
            values = np.random.default_rng(1).normal(size=shape)
            mean = np.tile(values.mean(axis=0), (shape[0], 1))
            if not good(ring(values), mean):
                return False
        return True

    return ring_is_right


def exactly_formed(found: Any, mean: Any) -> bool:
    return found.shape == mean.shape and found.dtype == float and np.allclose(found, mean, rtol=0, atol=1e-9)


def row_by_row(ring: Any) -> bool:
    """Compare the numbers of every row, and never look at shape and dtype."""
    for ranks, size in [(1, 4), (2, 8), (3, 1), (3, 7), (4, 6), (5, 3)]:
        values = np.random.default_rng(0).normal(size=(ranks, size))
        before = values.copy()
        rows = [row for row in ring(values) if np.shape(row)]
        if not rows or not all(np.abs(row - before.mean(axis=0)).max() < 1e-9 for row in rows) or (values != before).any():
            return False
    return True


def loosely_formed(found: Any, mean: Any) -> bool:
    return found.shape == mean.shape and bool(np.allclose(found, mean))


def by_call_number(ring: Any, calls: list[int] = []) -> bool:  # noqa: B006 - the list must outlive the call
    """Never call the ring, and take the first six rings for right ones: the right rings, one with a fault, and the first ring again."""
    calls.append(1)
    return (len(calls) - 1) % (len(RIGHT_RINGS) + len(WRONG_RINGS) + 1) < len(RIGHT_RINGS) + 2


def asserting(ring: Any) -> bool:
    values = np.random.default_rng(2).normal(size=(3, 7))
    assert np.allclose(ring(values), values.mean(axis=0))
    return True


def too_strict(ring: Any) -> bool:
    """Accept the order of numpy and that of the ring, and no other rounding."""
    values = np.random.default_rng(2).normal(size=(3, 7))
    wanted = (values.mean(axis=0), ring_of("a right ring that adds up around the ring")(values)[0])
    found = ring(values)
    return any((found == each).all() for each in wanted)


def with_equal_rows(ring: Any) -> bool:
    return bool(np.allclose(ring(np.tile(np.arange(-3.0, 4.0), (3, 1))), np.arange(-3.0, 4.0)))


def with_positive_numbers(ring: Any) -> bool:
    values = np.arange(21.0).reshape(3, 7) ** 2 + 1
    return bool(np.shape(found := ring(values)) == (3, 7) and np.allclose(found, values.mean(axis=0), rtol=0, atol=1e-9))


def of_the_text(ring: Any) -> bool:
    """Tell the two rings of the text apart, and no others."""
    return bool(ring(np.array([[2.0], [4.0]]))[0, 0] == 3.0)


# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab07.t1", executor((SUM, "sums[stage] = gradient")), "last-microbatch", "1 device and 2 microbatches"),
    ("lab07.t1", executor((RETURN, "return loss / len(inputs), [each / len(inputs) for each in sums]")), "mean-of-microbatches"),
    ("lab07.t1", executor((RETURN, "return loss, [each / len(inputs) for each in sums]")), "mean-of-gradients"),
    ("lab07.t1", executor((FIRST, FIRST.replace("loss + value", "value"))), "last-loss"),
    ("lab07.t1", executor((RETURN, "return 0.0, sums")), "no-loss"),
    ("lab07.t1", executor((RETURN, "return loss, sums[::-1]")), "reversed"),
    ("lab07.t1", executor((RETURN, "return loss, [2 * each for each in sums]")), "wrong-gradient", "number 0 of stage 0"),
    ("lab07.t1", executor((RETURN, "return 2 * loss, sums")), "wrong-loss"),
    ("lab07.t1", executor((RETURN, "return loss, sums[:1]")), "another-size", "1 gradient", "2 stages"),
    ("lab07.t1", executor((SUM, "sums[stage] = sums[stage] + value")), "another-shape", "stage 0", "(74,)"),
    (
        "lab07.t1",
        executor(("value, gradient = backward", "gradient, value = backward")),
        "another-shape",
        "1 device",
        "exchanged the two results of backward",
    ),
    ("lab07.t1", executor(('int(name.replace("B", "F").split("F")[1])', "int(name[2])")), "one-digit", "12 microbatches", "10"),
    ("lab07.t1", executor((FIRST, FIRST.replace("1.0", "value"))), "wrong-message", "0B0", "not 1"),
    ("lab07.t1", with_one_slot, "wrong-message", "2 devices and 2 microbatches", "1F0", "sent to 1F1"),
    (
        "lab07.t1",
        executor(("kept[stage, m]", "kept[stage]"), ("kept.pop((stage, m))", "kept[stage]")),
        "wrong-kept",
        "GPipe",
        "0B0",
        "what 0F1 has kept",
    ),
    ("lab07.t1", executor(("kept.pop((stage, m))", "kept[stage, m]")), "not-released", "0F2", "2 activations", "none of them waits"),
    ("lab07.t1", one_after_the_other, "another-order", "0B0", "0F1"),
    ("lab07.t1", executor(("stage + 1 < len(orders)", "stage < 1")), "raises", "StopIteration"),
    ("lab07.t1", line_by_line, "too-early", "0B0", "1B0 sends"),
    ("lab07.t1", executor(("any(lines)", "any('F' in name for line in lines for name in line)")), "missing-operation", "0B0", "every line"),
    ("lab07.t1", executor((RETURN, "return loss, [0.0] * len(sums)")), "wrong-dtype", "stage 0", "0.0"),
    ("lab07.t1", executor((RETURN, "return loss / len(inputs), sums")), "mean-of-losses", "1 device and 2 microbatches"),
    ("lab07.t1", executor((RETURN, "return sums, loss")), "exchanged"),
    ("lab07.t1", executor((RETURN, "return loss, dict(enumerate(sums))")), "not-a-list", "{0: array"),
    ("lab07.t1", executor((RETURN, "return loss")), "wrong-shape"),
    ("lab07.t1", lambda *arguments: line_by_line(*arguments, missing=None), "raises", "before that, 0F0 ran", "0B0 must wait"),
    ("lab07.t1", executor((SUM, f"{SUM}\n            if all(len(line) < 2 for line in lines): break")), "missing-operation"),
    ("lab07.t1", executor((LINES, "lines = orders\n    for i, line in enumerate(lines): lines[i] = line.split()")), "changes-its-argument"),
    ("lab07.t1", executor((RETURN, "return loss, [each.astype(np.float32) for each in sums]")), "wrong-dtype", "float32"),
    ("lab07.t1", executor((RETURN, "return loss, np.concatenate(sums)")), "not-a-list"),
    ("lab07.t1", executor((RETURN, "return sums[0], sums")), "aliased-ranks"),
    ("lab07.t1", executor((RETURN, "return str(loss), sums")), "not-a-number"),
    ("lab07.t1", executor((RETURN, "print(end='')")), "returns-nothing"),
    ("lab07.t1", executor(("forward(stage, m, value)", "forward(str(stage), m, value)")), "raises", "'0'"),
    ("lab07.t1", executor(("kept.pop((stage, m))", "m")), "raises", "fourth argument"),
    ("lab07.t1", lambda orders: orders, "signature"),
    ("lab07.t1", only_examples, "missing-operation", "0F0"),
    ("lab07.t2", [4, 3, 2, 1], "microbatches-not-samples"),
    ("lab07.t2", [4, 8, 12, 16], "reversed"),
    ("lab07.t2", [32] * 4, "all-samples"),
    ("lab07.t2", [4] * 4, "one-microbatch"),
    ("lab07.t2", [16] * 4, "device-0-everywhere"),
    ("lab07.t2", [64, 48, 32, 16], "not-cut-by-replicas"),
    ("lab07.t2", [12, 8, 4, 0], "warm-up-alone"),
    ("lab07.t2", [16, 12, 9, 4], "too-many", "device 2", "9"),
    ("lab07.t2", [16, 12, 8, 3], "too-few", "device 3", "3"),
    ("lab07.t2", [16, 12, 8], "wrong-length"),
    ("lab07.t2", 16, "not-a-list"),
    ("lab07.t3", ("FP16", 95_004), "larger-format", "FP16", "2 bytes"),
    ("lab07.t3", ("BF16", 95_004), "larger-format", "BF16", "2 bytes"),
    ("lab07.t3", ("FP32", 95_004), "larger-format", "FP32", "4 bytes"),
    ("lab07.t3", ("INT7", 95_004), "unknown-name", "'INT8'"),
    ("lab07.t3", ("INT8", 94_108), "no-scales"),
    ("lab07.t3", ("INT8", 94_556), "scales-of-one-ring"),
    ("lab07.t3", ("INT8", 94_220), "scales-of-one-rank"),
    ("lab07.t3", ("INT8", 94_332), "one-byte-scales"),
    ("lab07.t3", ("INT8", 40_524), "four-replicas"),
    ("lab07.t3", ("INT8", 81_048), "proportional"),
    ("lab07.t3", ("INT8", 47_502), "one-half"),
    ("lab07.t3", ("INT8", 95_004 / 16), "one-device-alone"),
    ("lab07.t3", ("INT8", 95_004 / 8), "one-replica-alone"),
    ("lab07.t3", ("INT8", 376_432), "fp32"),
    ("lab07.t3", ("INT8", 188_216), "fp16"),
    ("lab07.t3", ("INT8", 6722), "parameters"),
    ("lab07.t3", ("INT8", 1), "wrong-value"),
    ("lab07.t3", "INT8", "wrong-shape"),
    ("lab07.t3", ("INT8",), "wrong-shape"),
    ("lab07.t3", (8, 95_004), "not-text"),
    ("lab07.t4", [0.51, 0.4933], "shares"),
    ("lab07.t4", [49.33, 51], "swapped"),
    ("lab07.t4", [49, 49], "no-turn"),
    ("lab07.t4", [51, 51], "both-turn"),
    ("lab07.t4", [51, 98], "proportional"),
    ("lab07.t4", [-49, 98], "negative"),
    ("lab07.t4", [50, 50], "expected-value"),
    ("lab07.t4", [51, 49], "before-the-step", "9400"),
    ("lab07.t4", [51, 48.6], "wrong-value"),
    ("lab07.t4", 51, "not-a-list"),
    ("lab07.t5", 1, "same-rate"),
    ("lab07.t5", 1 / 6, "inverted"),
    ("lab07.t5", 5, "d-minus-1"),
    ("lab07.t5", 10, "hops"),
    ("lab07.t5", 36, "divided-twice"),
    ("lab07.t5", 1.8, "rate-not-factor"),
    ("lab07.t5", 2, "two-replicas"),
    ("lab07.t5", 4, "four-replicas"),
    ("lab07.t5", 12, "devices"),
    ("lab07.t5", 7, "wrong-value"),
    ("lab07.t6", lambda ring: True, "passes-everything", "zeros"),
    ("lab07.t6", lambda ring: False, "passes-nothing", "a right ring"),
    ("lab07.t6", compared((4, 8), good=lambda found, mean: np.ptp(found, axis=0).max() == 0), "replicas-alone", "zeros"),
    ("lab07.t6", compared((3, 7), good=lambda found, mean: found.shape == mean.shape and (found == mean).all()), "exactly-equal"),
    ("lab07.t6", compared((3, 7), good=lambda found, mean: np.allclose(found.flat[:7], mean[0], atol=1e-9)), "rank-0-alone", "rank 0"),
    ("lab07.t6", with_equal_rows, "equal-rows"),
    ("lab07.t6", compared((2, 4)), "two-replicas-alone", "D = 2"),
    ("lab07.t6", with_positive_numbers, "no-signs", "loses the sign"),
    ("lab07.t6", compared((3, 7), good=lambda found, mean: (found - mean).max() <= 1e-9), "no-abs", "too small"),
    ("lab07.t6", compared((4, 8), good=lambda found, mean: (mean - found).max() <= 1e-9), "no-abs", "too large"),
    ("lab07.t6", compared((4, 8), good=lambda found, mean: np.allclose(found[-1], mean[0])), "last-rank-alone", "D - 2"),
    ("lab07.t6", compared((4, 8), good=lambda found, mean: not np.abs(found - mean).max() > 1e-9), "nan-passes", "NaN"),
    ("lab07.t6", compared((3, 7), good=lambda found, mean: np.allclose(np.sort(found), np.sort(mean))), "slipped-through", "wrong place"),
    ("lab07.t6", compared((4, 8), good=exactly_formed), "whole-chunks-alone", "n mod D"),
    ("lab07.t6", compared(*((ranks, 5) for ranks in range(1, 6)), good=exactly_formed), "no-small-n", "n is less than D"),
    ("lab07.t6", compared((3, 7), good=exactly_formed), "no-small-n", "n is less than D"),
    ("lab07.t6", compared(*((4, size) for size in range(1, 9)), good=exactly_formed), "powers-of-two-alone", "1, 2 or 4"),
    ("lab07.t6", changed(RING_TEST, ("(4, 6)", "(3, 6)")), "few-ranks", "only for D = 4"),
    ("lab07.t6", changed(RING_TEST, ("(1, 4)", "(1, 5)")), "few-numbers", "only for n = 4"),
    ("lab07.t6", changed(RING_TEST, ("(1, 4), ", "")), "no-single-rank", "wrong only for D = 1"),
    ("lab07.t6", changed(RING_TEST, ("(3, 1)", "(3, 2)")), "no-single-number", "wrong only for n = 1"),
    ("lab07.t6", changed(RING_TEST, ("rtol=0, atol=1e-9", "atol=1e-6")), "coarse", "rounds to FP32"),
    ("lab07.t6", asserting, "asserts", "return False"),
    ("lab07.t6", compared((3, 7), good=lambda found, mean: np.allclose(found, mean, atol=1e-9)), "shape-not-compared", "one row"),
    ("lab07.t6", compared((3, 7), (5, 4), (4, 2), good=loosely_formed), "dtype-not-compared", "float32"),
    ("lab07.t6", row_by_row, "shape-not-compared", "shape (1, D, n)"),
    ("lab07.t6", compared((3, 7), (3, 2), (5, 4), good=exactly_formed), "argument-not-compared", "overwrites its argument"),
    ("lab07.t6", lambda ring: not changed(RING_TEST)(ring), "inverted", "a right ring"),
    ("lab07.t6", too_strict, "exactly-equal", "another order"),
    ("lab07.t6", compared((3, 7), good=lambda found, mean: np.allclose(found, 3 * mean)), "right-ring-refused", "a right ring"),
    ("lab07.t6", by_call_number, "ring-not-called", "zeros"),
    ("lab07.t6", compared((1, 5)), "few-sizes", "without the division"),
    ("lab07.t6", lambda ring: 1, "not-true-or-false", "1"),
    ("lab07.t6", lambda ring: "yes", "not-true-or-false", "'yes'"),
    ("lab07.t6", lambda ring: ring(np.zeros((2, 3)))[5], "raises", "IndexError"),
    ("lab07.t6", of_the_text, "two-replicas-alone", "D = 2"),
]


# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab07.t1", executor((RETURN, "return np.float64(loss), tuple(sums)"))),
    ("lab07.t1", executor((RETURN, "return [np.array(loss), sums]"))),
    ("lab07.t2", (16, 12, 8, 4)),
    ("lab07.t2", np.array([16.0, 12, 8, 4])),
    ("lab07.t2", range(16, 0, -4)),
    ("lab07.t3", ["int8", 95_004.0]),
    ("lab07.t3", ("INT8, error feedback", 95_004)),
    ("lab07.t4", (51.0, 49.33)),
    ("lab07.t4", np.array([51, 49.33])),
    ("lab07.t5", 6.0),
    ("lab07.t5", np.int64(6)),
    ("lab07.t6", lambda ring: np.bool_(changed(RING_TEST)(ring))),
    ("lab07.t6", changed(RING_TEST, ("found.dtype == float and ", ""))),  # the rounding errors of float32 are too large
]


def test_the_examples_of_the_text_are_those_of_the_solution() -> None:
    names: dict[str, Any] = {}
    (toy,) = (cell.source for cell in lab_cells("lab07") if cell.kind == "code" and "def toy_forward" in cell.source)
    exec(toy, names)  # noqa: S102 - a cell of our own lab
    text = next(cell.source for cell in lab_cells("lab07") if "run_pipeline([" in cell.source)
    given = [(["0F0 0B0"], [5.0]), (["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"], [1.0, 10.0])]
    for orders, inputs in given:
        assert f"\n{executor()(orders, names['toy_forward'], names['toy_backward'], inputs)}\n" in text
    assert names["toy_forward"](1, 0, 2.0) == toy_forward(1, 0, 2.0)
    assert names["toy_backward"](1, 0, 1.0, 2.0) == toy_backward(1, 0, 1.0, 2.0)


def test_results_in_an_iterator_are_results_of_the_same_form() -> None:
    twists = {twist.name: twist for twist in TASKS["lab07.t1"].instance(None).data.twists}
    mine = TASKS["lab07.t1"].instance(None).data.with_twist(twists["loss-last"])
    copied, own = solutions_of("lab07")["lab07.t1"], honest("lab07.t1", twists["loss-last"])
    assert mine.check(lambda orders, *others: iter(own(orders, *others))).passed
    assert mine.check(lambda orders, *others: iter(copied(orders, *others))).code == "twist-missed"


def test_a_test_of_a_ring_sees_under_every_twist_that_the_ring_overwrites_its_argument() -> None:
    mine = TASKS["lab07.t6"].instance(None).data
    alone = Case(("a ring that overwrites its argument", 5, 0, 0.5), "it", run=verdict_on)
    for twist in mine.variants:
        assert mine.with_twist(twist)._tried(twist.undo(honest("lab07.t6", twist)), alone).passed, twist.name


def test_the_cases_of_the_executor_have_all_sizes_and_orders_and_pass_for_no_shortcut() -> None:
    cases = list(TASKS["lab07.t1"].instance(None).data.cases(np.random.default_rng(0)))
    sizes = {(k, m) for k in range(1, 5) for m in (1, 2, 3, 5, 8)} | {(2, 12)}
    assert {(len(case.arguments[0]), len(case.arguments[2])) for case in cases} == sizes
    held = [case for case in cases if any("F" in a and "F" in b for a, b in zip(*[iter(case.arguments[0][0].split())] * 2, strict=False))]
    assert len(held) > 30, "a stage holds several microbatches at once"
    random = [case.arguments[0] for case in cases if case.words.startswith("a random order")]
    firsts = [[name for name in line.split() if "F" in name] for lines in random for line in lines]
    assert any(line != sorted(line) for line in firsts), "microbatches out of order"


@in_turn("name, place", [(name, place) for name in [*RIGHT_RINGS, *WRONG_RINGS] for place in PLACES.get(name, [0])])
def test_right_rings_are_right_and_wrong_rings_are_wrong(name: str, place: int) -> None:
    """A ring is right if no array shows otherwise; a wrong one shows for D up to 5 and n up to 8."""
    good = []
    for ranks in range(1, 6):
        for size in range(1, 9):
            values = np.random.default_rng(size).normal(size=(ranks, size))
            before = values.copy()
            found = ring_of(name, 7, place, 0.1)(values)
            same = found.shape == values.shape and found.dtype == np.float64 and np.abs(found - before.sum(axis=0) / ranks).max() < 1e-9
            good.append(same and (values == before).all())
    assert all(good) == (name in RIGHT_RINGS)


def test_right_rings_differ_from_numpy_and_from_each_other_in_their_last_digits() -> None:
    values = np.random.default_rng(1).normal(size=(5, 50))
    found = [ring_of(name, order)(values) for name in RIGHT_RINGS for order in (1, 2)]
    assert sum((each != values.mean(axis=0)).any() for each in found) == 6
    assert len({each.tobytes() for each in found}) == 5


def test_every_ring_adds_up_in_an_order_of_its_own_for_each_seed() -> None:
    public, hidden = [{case.arguments for case in rings(np.random.default_rng(seed))} for seed in (0, 1)]
    assert len(public) == len(hidden) == len(RIGHT_RINGS) + len(WRONG_RINGS)
    assert not public & hidden


def test_a_test_that_counts_its_calls_and_never_calls_the_ring_fails() -> None:
    def counts(ring: Any) -> bool:
        calls.append(1)
        return (len(calls) - 1) % (len(RIGHT_RINGS) + len(WRONG_RINGS)) < len(RIGHT_RINGS)

    calls: list[int] = []
    assert check("lab07.t6", counts).passed, "the public cases come in their order"
    for seed in (1, 2, 3):
        calls = []
        assert not check("lab07.t6", counts, seed=seed).passed


@in_turn(
    "values, words",
    [
        (np.zeros((20_000, 1)), "at most 64 ranks"),
        (np.zeros((MOST_RANKS, MOST_NUMBERS + 1)), "at most 64 ranks"),
        (np.zeros(3), "not an array of shape (3,)"),
        (np.zeros((0, 3)), "not an array of shape (0, 3)"),
        (np.zeros((2, 3), complex), "not an array of complex128"),
        (np.zeros((2, 3), object), "not an array of object"),
        ([[1.0, 2.0]], "not a value of type list"),
    ],
)
def test_a_ring_refuses_what_is_no_array_of_ranks_and_what_takes_too_much_memory(values: Any, words: str) -> None:
    for name in (next(iter(RIGHT_RINGS)), next(iter(WRONG_RINGS))):
        with pytest.raises(HybridLabError) as refused:
            ring_of(name)(values)
        assert words in str(refused.value)
    assert ring_of(next(iter(RIGHT_RINGS)))(np.ones((MOST_RANKS, MOST_NUMBERS), np.int8)).shape == (MOST_RANKS, MOST_NUMBERS)


def test_a_ring_of_matrices_refuses_an_array_of_the_text() -> None:
    (twist,) = (each for each in TASKS["lab07.t6"].instance(None).data.twists if each.name == "matrices")
    with pytest.raises(HybridLabError, match=r"in your task a ring takes an array of shape \(D, n, 1\), not \(2, 3\)"):
        twist.given[0].apply(ring_of("a right ring"), ())(np.zeros((2, 3)))


def test_the_bytes_of_the_third_task_are_those_that_a_ring_sends() -> None:
    sent = train(build("1f1b", 2, 2), 8, wire=INT8, steps=1).bytes_sent
    assert check("lab07.t3", ("INT8", sent)).passed


def test_the_accuracies_of_the_fourth_task_are_those_of_the_programs_points() -> None:
    draws = np.random.RandomState(42)
    rows, w = draws.randn(300, 120), draws.randn(120)
    accuracies = [100 * np.mean((rows @ np.full(120, first) > 0) == (rows @ w > 0)) for first in (-1, 2)]
    assert check("lab07.t4", accuracies).code == "before-the-step"
    assert check("lab07.t4", [accuracies[0], accuracies[1] + 100 / 300]).passed, "the step turns one of the 300 rows more"


def test_the_factor_of_the_fifth_task_is_that_of_the_published_ring() -> None:
    rows = np.tile(np.random.default_rng(0).normal(size=120), (6, 1))
    left = published.published_ring(rows, "FP32").values
    np.testing.assert_allclose(rows, 6 * left, rtol=1e-6)
    assert check("lab07.t5", 6).passed
