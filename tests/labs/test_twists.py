"""Under each twist of a build an honest solution passes, and the published solution, copied, does not.

What all twists of a build have from the build is tried once for each build.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from honest import changes, honest, spread
from hypothesis import settings
from profiles import QUICK
from solutions import solutions_of

from hybridlab import Costs, HybridLabError, Schedule, WireFormat, build, simulate
from hybridlab.collectives import ring_all_reduce
from hybridlab.course.checking.answers import plain_values, same
from hybridlab.course.checking.builds import PUBLIC_SEED, WITHOUT_THE_TWIST
from hybridlab.course.checking.calls import ENDED
from hybridlab.course.labs.lab01.messages import messages_of
from hybridlab.course.labs.lab05.messages import through_int8
from hybridlab.course.labs.lab06.overlap import given_by, rings_of
from hybridlab.course.labs.lab12.interleaved import goal_of
from hybridlab.course.tasks import TASKS, Build, Case, Twist
from hybridlab.mesh import Mesh
from hybridlab.wire import Packet

Function = Callable[..., Any]

BUILDS: dict[str, Build] = {key: task.instance(None).data for key, task in TASKS.items() if task.kind == "build"}
COMBINATIONS = 4 if settings().max_examples == QUICK else 1  # one in so many pairs of changes is tried
LAST = [(key, each.variants[-1]) for key, each in BUILDS.items()]
each_build = pytest.mark.parametrize("key", BUILDS)
one_build = pytest.mark.parametrize("key", [key if key == "lab02.t5" else pytest.param(key, marks=pytest.mark.slow) for key in BUILDS])
once_a_build = in_turn("key, twist", LAST)


@cache
def twisted(key: str, place: int) -> Build:
    """Return a build as a student gets it whose seed draws the twist at this place."""
    return BUILDS[key].twisted(place)


def with_last_twist(key: str) -> Build:
    return twisted(key, len(BUILDS[key].variants) - 1)


def on_few_cases(build: Build) -> Build:
    """Return a build with a few of its public cases, which take little time."""
    cases = [build.public_cases[place] for place in spread(build)]
    untwisted = build.untwisted and on_few_cases(build.untwisted)
    return replace(build, untwisted=untwisted, cases=lambda rng: cases)


def library_messages(stages: int, replicas: int, microbatches: int) -> Any:
    return messages_of(Mesh(stages, replicas), microbatches)


def library_times(orders: list[str], forward: list[float], backward: list[float], latency: float) -> dict[str, tuple[float, float]]:
    """Ask the library, with device d of each line as it is given."""
    timeline = simulate(Schedule.parse("\n".join(orders)), Costs(forward=forward, backward=backward, p2p=latency))
    spans = zip(timeline.start.tolist(), timeline.end.tolist(), strict=True)
    return dict(zip(map(str, timeline.ops), spans, strict=True))


def library_peaks(orders: list[str]) -> list[float]:
    return simulate(Schedule.parse("\n".join(orders)), Costs(forward=1, backward=2)).peak_activations.tolist()


def library_codes(values: Any, block: int) -> Any:
    packet = WireFormat("INT8", block=block).encode(values)
    return packet.codes, packet.scales


def library_numbers(codes: Any, scales: Any, block: int) -> Any:
    wire = WireFormat("INT8", block=block)
    return wire.decode(Packet(wire, codes, scales)).astype(float)


def library_feedback(gradient: Any, residual: Any, block: int) -> Any:
    sent = through_int8(gradient + residual, block)
    return sent, gradient + residual - sent


LIBRARY: dict[str, Function] = {
    "lab01.t6": library_messages,
    "lab02.t5": lambda devices, microbatches: str(build("1f1b", devices, microbatches)),
    "lab02.t6": library_times,
    "lab03.t3": library_peaks,
    "lab04.t7": ring_all_reduce,
    "lab05.t1": library_codes,
    "lab05.t3": library_numbers,
    "lab05.t6": library_feedback,
    "lab06.t5": lambda rows, ring_time: rings_of(given_by(rows), ring_time),
    "lab12.t5": lambda devices, microbatches, chunks: str(goal_of(devices, microbatches, chunks)),
    "lab18.t2": lambda devices, microbatches, *times: str(build("zb-h1", devices, microbatches)),
}


def test_every_twist_is_written_by_hand_once_more_and_nothing_else_is() -> None:
    assert set(changes()) == {(key, twist.name) for key, each in BUILDS.items() for twist in each.twists}


@in_turn("key", BUILDS)
def test_a_build_has_many_variants_and_seeds_draw_all_of_them(key: str) -> None:
    drawn = [TASKS[key].personal(seed).data.twist for seed in range(len(BUILDS[key].variants))]
    assert len(drawn) >= 16, "add rows, or split them into several groups by `about`: only rows of two groups are combined"
    for words in ([twist.name for twist in drawn], [twist.sentence for twist in drawn]):
        assert len(set(words)) == len(words)


@in_turn("twist", [twist for each in BUILDS.values() for twist in each.twists])
def test_a_sentence_ends_what_begins_with_in_your_task(twist: Twist) -> None:
    assert twist.sentence[0].islower() or twist.sentence.startswith(("F", "B", "`"))
    assert twist.sentence[-1] not in ".:;, "
    assert ". " not in twist.sentence
    assert len(twist.sentence) <= 200


def fails_as_a_copy(key: str, mine: Build) -> str:
    """Return the feedback on the published solution if it is wrong; empty if it is right."""
    assert mine.twist
    feedback = mine.check(solutions_of(key[:5])[key])
    missed = (feedback.code, *feedback.messages[:2]) == ("twist-missed", WITHOUT_THE_TWIST, mine.twist.reminder)
    right = not feedback.passed and mine.twist.reminder in feedback.messages if mine.twist.judge else missed
    return "" if right else f"{mine.twist.name}: {feedback}"


@each_build
def test_under_every_twist_an_honest_solution_passes_and_a_copy_fails_on_few_cases(key: str) -> None:
    """Of two changes, a student can make either one first."""
    failed = []
    for place, twist in enumerate(BUILDS[key].variants):
        if twist.rows and place % (5 if BUILDS[key].threads else COMBINATIONS):
            continue  # cases with threads wait on purpose
        mine = twisted(key, place)
        few = [mine.public_cases[case] for case in spread(mine)]
        for last_change_first in (False, True)[: len(twist.rows) or 1]:
            function = honest(key, twist, last_change_first)
            told = [mine._tried(twist.undo(function), case) for case in few]
            first = "with the second change made first (if this alone fails, give both the same `about`)" if last_change_first else ""
            failed += [f"{twist.name} {first} for {case.words}: {each}" for case, each in zip(few, told, strict=True) if not each.passed]
        copied = all(mine._tried(twist.undo(solutions_of(key[:5])[key]), case).passed for case in few)
        failed += [f"{twist.name}: a copy passes"] * copied
    assert not failed, "\n".join(failed)


@pytest.mark.slow
@each_build
def test_under_a_twist_an_honest_solution_passes_and_a_copy_fails(key: str) -> None:
    """On all cases. Combinations of twists have the maps of their twists."""
    failed = []
    for place, twist in enumerate(BUILDS[key].twists):
        mine = twisted(key, place)
        for seed in (PUBLIC_SEED, 20_011):
            feedback = mine.check(honest(key, twist), seed)
            failed += [f"{twist.name}: {feedback}"] * (not feedback.passed)
        failed += filter(None, [fails_as_a_copy(key, mine)])
    assert not failed, "\n".join(failed)


def kinds(value: Any) -> Any:
    """Return the types of a result and of what it contains; whole numbers and floats are alike."""
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [kinds(each) for each in value]
    if isinstance(value, dict):
        return {name: kinds(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape
    return "number" if isinstance(value, (int, float, np.number)) else type(value).__name__


@in_turn("key", ["lab02.t5", "lab05.t1", "lab05.t3", "lab07.t1", "lab16.t4", "lab18.t2"])
def test_a_result_without_its_twist_has_the_types_of_the_published_solution(key: str) -> None:
    """Later labs use these functions: they join lines of text, index lists and pass arrays on."""
    case = BUILDS[key].public_cases[spread(BUILDS[key])[2]]
    wanted = kinds(case.run(solutions_of(key[:5])[key], *deepcopy(case.arguments)))
    for twist in [each for each in BUILDS[key].twists if not each.cases]:
        result = case.run(twist.undo(honest(key, twist)), *deepcopy(case.arguments))
        assert (twist.name, kinds(result)) == (twist.name, wanted)


@in_turn("key", BUILDS)
def test_a_copy_and_half_of_a_change_are_named(key: str) -> None:
    mine = on_few_cases(with_last_twist(key))
    assert mine.twist
    assert not fails_as_a_copy(key, mine)
    for part in mine.twist.rows:
        feedback = mine.check(honest(key, part))
        only = f"your function makes only this one of your changes: {part.sentence}"
        assert (feedback.code, *feedback.messages[:2]) == ("twist-missed", only, mine.twist.reminder)


@in_turn("key", BUILDS)
def test_the_examples_are_results_of_the_published_solution(key: str) -> None:
    """So those of a twist are results of an honest solution, because the maps make them."""
    for example in BUILDS[key].examples:
        if example.of is None and not any(isinstance(each, str) and not each for each in example.arguments):
            returned = solutions_of(key[:5])[key](*deepcopy(example.arguments))
            assert same(plain_values(returned), plain_values(example.result))
    assert BUILDS[key].examples
    assert all(twisted(key, place).example for place in range(len(BUILDS[key].variants)))


@one_build
def test_no_solution_of_one_twist_passes_under_another_one(key: str) -> None:
    """On few cases, each honest solution passes under its own twist alone."""
    variants = BUILDS[key].twists if BUILDS[key].threads else BUILDS[key].variants  # threads take long
    builds = [on_few_cases(twisted(key, place)) for place in range(len(variants))]
    passing = [
        (mine.twist.name, other.name)
        for mine in builds
        for other in variants
        if mine.twist and other.name != mine.twist.name and not any(mine.codes(honest(key, other)))
    ]
    assert passing == []


@each_build
def test_the_program_of_a_known_mistake_fails_under_every_twist(key: str) -> None:
    passing = []
    for place, twist in enumerate(BUILDS[key].variants):
        if twist.rows and place % COMBINATIONS:
            continue
        mine = on_few_cases(twisted(key, place))
        passing += [(twist.name, each.code) for each in mine.mistakes if not any(mine.codes(each.result))]
    assert passing == [], "these mistakes are right under these twists: leave them out there, with `under={name: None}`"


def test_a_twisted_build_is_tried_on_the_cases_of_a_seed() -> None:
    """A grader draws hidden cases; those of the public check would be known to all."""
    calls: list[Any] = []
    mine, seed = with_last_twist("lab15.t3"), 7
    assert mine.twist
    function = honest("lab15.t3", mine.twist)

    def counts(*arguments: Any) -> Any:
        calls.append(arguments)
        return function(*arguments)

    assert mine.check(counts, seed).passed
    wanted = [mine.twist.map.arguments(case.arguments) for case in BUILDS["lab15.t3"].cases(np.random.default_rng(seed))]
    assert {tuple(each[0].tolist()) for each in calls} == {tuple(each[0].tolist()) for each in wanted}


def test_known_mistakes_name_twists_that_exist() -> None:
    """A sentence for a twist that was renamed would never be shown."""
    for each in BUILDS.values():
        names = {twist.name for twist in each.twists}
        assert all(set(mistake.under) <= names for mistake in each.mistakes)


@in_turn("key", BUILDS)
def test_a_function_that_is_wrong_in_both_tasks_is_described(key: str) -> None:
    mine = on_few_cases(with_last_twist(key))
    feedback = mine.check(lambda *arguments: 5)
    assert feedback.code not in ("passed", "twist-missed", "raises")
    assert mine.twist
    assert mine.twist.explanation(own_names=feedback.drawing is not None) in feedback.messages


def test_pictures_and_sentences_have_the_devices_and_operations_of_the_student() -> None:
    """1F1B whose device 1 of 4 begins with one forward too few; in the student's task the last stage and the last microbatch come first."""
    names = ("reversed-stages", "last-microbatch-first")
    (twist,) = (each for each in BUILDS["lab02.t5"].variants if tuple(row.name for row in each.rows) == names)

    def late(devices: int, microbatches: int) -> str:
        order = str(build("1f1b", devices, microbatches))
        return order.replace("1F0 1F1 1F2 1B0", "1F0 1F1 1B0 1F2")

    mine = replace(BUILDS["lab02.t5"], cases=lambda rng: [Case((4, 4), "4 devices and 4 microbatches")]).with_twist(twist)
    feedback = mine.check(twist.map.apply(late, ()))
    assert "device 2 starts its first backward after 2 forwards" in feedback.messages[0]
    assert twist.reminder in feedback.messages
    assert feedback.drawing
    assert "Marked as wrong: 1B3 on device 2" in repr(feedback.drawing.figure())


def test_what_a_function_prints_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    def prints(orders: list[str]) -> list[int]:
        print("called")
        return [0 for _ in orders]

    assert not twisted("lab03.t3", 0).check(prints).passed
    shown = capsys.readouterr().out
    assert not BUILDS["lab03.t3"].check(prints).passed
    assert shown == capsys.readouterr().out


def test_an_endless_function_is_not_called_again() -> None:
    calls = []

    def late(*arguments: Any) -> None:
        calls.append(arguments)
        raise KeyboardInterrupt

    assert with_last_twist("lab01.t6").check(late).code in ENDED
    assert len(calls) == 1


def test_a_function_that_waits_for_ever_without_its_twist_is_stopped() -> None:
    """It is called with the task in the text only to see whether its author forgot the twist."""
    calls = []

    def waits(orders: list[str], *times: Any) -> Any:
        calls.append(orders)
        if len(calls) < 3:
            return {}
        while True:
            pass

    assert twisted("lab02.t6", 0).check(waits).code not in ("passed", "twist-missed")
    assert len(calls) == 3


@once_a_build
def test_the_source_of_the_library_fails(key: str, twist: Twist) -> None:
    if key in LIBRARY:
        assert on_few_cases(with_last_twist(key)).check(LIBRARY[key]).code not in ("passed", "not-your-own", "signature")


@pytest.mark.slow
@once_a_build
def test_a_result_of_another_shape_gets_feedback(key: str, twist: Twist) -> None:
    for result in (None, 5, "x", [], {}, [[]], [None], [5], {"x": 5}, {5}, object(), [object()], float("nan"), (1, 2), iter([1])):
        feedback = with_last_twist(key).check(lambda *arguments, result=result: result)
        assert not feedback.passed
        assert feedback.code != "raises", (result, feedback.messages)


@in_turn("key, twist", [(key, twist) for key, each in BUILDS.items() for twist in each.twists])
def test_an_error_of_the_function_goes_through_every_twist_untouched(key: str, twist: Twist) -> None:
    """A function in another process reports its failures so."""

    def relays(*arguments: Any) -> None:
        raise HybridLabError("too slow", "too-slow")

    case = BUILDS[key].public_cases[-1]
    with pytest.raises(HybridLabError, match="too slow"):
        case.run(twist.undo(relays), *deepcopy(case.arguments))


class Elsewhere:
    """A function that runs elsewhere: an object without a name, which only can be called."""

    __slots__ = ("_function",)

    def __init__(self, function: Function) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


@once_a_build
def test_a_callable_object_passes_as_a_function_does(key: str, twist: Twist) -> None:
    assert on_few_cases(with_last_twist(key)).check(Elsewhere(honest(key, twist))).passed


@once_a_build
def test_a_function_with_other_arguments_is_refused_by_its_own_signature(key: str, twist: Twist) -> None:
    assert with_last_twist(key).check(lambda: None).code == "signature"


@in_turn("key, twist", [(key, twist) for key, each in BUILDS.items() for twist in each.twists if twist.given])
def test_a_function_that_changes_an_argument_of_its_own_form_is_refused(key: str, twist: Twist) -> None:
    mine, function = BUILDS[key].with_twist(twist), honest(key, twist)

    def spoils(*arguments: Any) -> Any:
        result = function(*arguments)
        for argument in arguments:
            if isinstance(argument, (list, dict)):
                argument.clear()
            elif getattr(argument, "ndim", 0):
                argument[:] = 1
        return result

    few = [mine.public_cases[place] for place in spread(mine)]
    if any(isinstance(each, (list, dict)) or getattr(each, "ndim", 0) for each in few[-1].arguments):
        assert not all(mine._tried(twist.undo(spoils), case).passed for case in few)
