"""Under each twist of a build an honest solution passes, and the public solution, copied, does not.

What all twists of a build have from the build is tried once for each build.
"""

import importlib.util
from collections import Counter
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from hypothesis import settings
from profiles import QUICK
from solutions import solutions_of

from hybridlab import Costs, HybridLabError, Schedule, WireFormat, build, simulate
from hybridlab.collectives import ring_all_reduce
from hybridlab.course.tasks import TASKS, Build, Case, Twist
from hybridlab.course.checking.builds import WITHOUT_THE_TWIST
from hybridlab.course.checking.calls import ENDED
from hybridlab.course.labs.lab12.chunk_orders import goal_of
from hybridlab.course.labs.lab01.mesh_messages import messages_of
from hybridlab.course.labs.lab05.messages import through_int8
from hybridlab.course.labs.lab06.overlap import given_by, rings_of
from hybridlab.mesh import Mesh
from hybridlab.wire import Packet

Function = Callable[..., Any]

LABS = Path(__file__).parent  # the folder of each lab has honest solutions


def made_once(build: Build) -> Build:
    """Return a build whose cases for a seed are made once for all its twists, because they take longer to make than to try."""
    made: dict[str, tuple[Case, ...]] = {}

    def cases(rng: np.random.Generator) -> Iterable[Case]:
        state = str(rng.bit_generator.state)
        if state not in made:
            made[state] = tuple(build.cases(rng))
        return made[state]

    return replace(build, cases=cases)


ON_THE_PAGE: dict[str, Build] = {key: made_once(task.instance(None).data) for key, task in TASKS.items() if task.kind == "build"}
EVERY = [(key, twist) for key, page in ON_THE_PAGE.items() for twist in page.twists]
# of each build the first twist, which is simple, and the last one, which mostly has two parts
FEW = [(key, page.twists[place]) for key, page in ON_THE_PAGE.items() for place in (0, -1) if page.twists]
LAST = [(key, page.twists[-1]) for key, page in ON_THE_PAGE.items() if page.twists]
PARAMS = [pytest.param(key, twist, marks=() if (key, twist) in FEW else pytest.mark.slow) for key, twist in EVERY]
each_twist = pytest.mark.parametrize(("key", "twist"), PARAMS, ids=lambda each: getattr(each, "name", each))
once_a_build = in_turn("key, twist", LAST)
SEEDS = (20_011, 0)[: 1 if settings().max_examples == QUICK else 2]  # 0 is that of the public check


def honest_solutions() -> dict[tuple[str, str], Function]:
    """Return the solutions of the files ``honest.py``, by task and twist."""
    found: dict[tuple[str, str], Function] = {}
    for path in sorted(LABS.glob("lab*/honest.py")):
        spec = importlib.util.spec_from_file_location(f"{path.parent.name}_honest", path)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert all(key.startswith(path.parent.name) for key, _ in module.SOLUTIONS), f"a solution of another lab stands in {path}"
        found |= module.SOLUTIONS
    return found


HONEST = honest_solutions()


DRAWN = {(key, seed): page.twisted(seed) for key, page in ON_THE_PAGE.items() for seed in range(len(page.twists))}


def twisted(key: str, twist: Twist) -> Build:
    """Return a build as a student gets it who has this twist."""
    drawn = DRAWN[key, ON_THE_PAGE[key].twists.index(twist)]
    assert drawn.twist is twist
    return drawn


def library_messages(stages: int, replicas: int, microbatches: int) -> Any:
    return messages_of(Mesh(stages, replicas), microbatches)


def library_times(orders: list[str], forward: list[float], backward: list[float], latency: float) -> dict[str, tuple[float, float]]:
    """Ask the library, with device d of each line as it is given."""
    timeline = simulate(Schedule.parse("\n".join(orders)), Costs(forward=forward, backward=backward, p2p=latency))
    spans = zip(timeline.start.tolist(), timeline.end.tolist(), strict=True)
    return dict(zip(map(str, timeline.ops), spans, strict=True))


def library_peaks(orders: list[str]) -> list[float]:
    return simulate(Schedule.parse("\n".join(orders)), Costs(forward=1, backward=2)).peak_activations.tolist()


# a loop that waits for operations may wait forever in another order
OF_ORDERS = {"lab02.t6", "lab03.t3", "lab06.t5", "lab07.t1", "lab08.t5", "lab11.t4", "lab12.t6", "lab13.t5", "lab14.t3", "lab16.t4"}
NOT_RENAMED = {"lab04.t7"}  # chunks of different lengths cannot be renamed: the judge knows the way of the ring
OF_LISTS = {"lab01.t6", "lab02.t5", "lab02.t6", "lab03.t3"}  # called with the case itself; others are in test_twists_renaming.py


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
    "lab13.t5": lambda devices, microbatches, *times: str(build("zb-h1", devices, microbatches)),
}


def test_there_is_an_honest_solution_for_every_twist_and_for_nothing_else() -> None:
    assert set(HONEST) == {(key, twist.name) for key, twist in EVERY}


def test_graded_builds_have_enough_twists() -> None:
    assert set(LIBRARY) | {"lab07.t1", "lab07.t6"} <= {key for key, _ in EVERY}
    assert all(count >= 4 for count in Counter(key for key, _ in EVERY).values())


def test_the_names_and_the_sentences_of_a_build_are_all_different() -> None:
    for page in ON_THE_PAGE.values():
        for words in ([twist.name for twist in page.twists], [twist.sentence for twist in page.twists]):
            assert len(set(words)) == len(words)


@in_turn("twist", [twist for _, twist in EVERY])
def test_a_sentence_ends_what_begins_with_in_your_task(twist: Twist) -> None:
    assert twist.sentence[0].islower() or twist.sentence.startswith(("F", "B", "`"))
    assert twist.sentence[-1] not in ".:;, "
    assert ". " not in twist.sentence
    assert len(twist.sentence) <= 200


@in_turn("key", dict.fromkeys(key for key, _ in EVERY))
def test_seeds_draw_every_twist_and_two_neighbours_differ(key: str) -> None:
    twists = ON_THE_PAGE[key].twists
    drawn = [TASKS[key].personal(seed).data.twist.name for seed in range(len(twists))]
    assert sorted(drawn) == sorted(twist.name for twist in twists)


@each_twist
def test_an_honest_solution_passes(key: str, twist: Twist) -> None:
    function, mine = HONEST[key, twist.name], twisted(key, twist)
    for seed in SEEDS:
        feedback = mine.judged(function, seed)
        assert feedback.passed, (seed, feedback.messages)
    if twist.changes and key not in NOT_RENAMED:  # its judge is another one than that of the page
        assert ON_THE_PAGE[key].judged(twist.standard(function)).passed


@each_twist
def test_the_public_solution_fails(key: str, twist: Twist) -> None:
    feedback = twisted(key, twist).judged(solutions_of(key[:5])[key])
    if key in OF_ORDERS or "judge" in twist.changes:
        assert not feedback.passed
        assert feedback.messages[-1] == twist.told
    else:
        assert (feedback.code, feedback.messages) == ("twist-missed", (WITHOUT_THE_TWIST, twist.reminder))


def test_the_public_solution_fails_for_the_cases_of_another_seed() -> None:
    key, twist = LAST[0]
    assert twisted(key, twist).judged(solutions_of(key[:5])[key], 7).code == "twist-missed"


def test_the_cases_of_another_seed_are_those_that_a_twisted_build_is_judged_by() -> None:
    calls: list[Any] = []
    key, twist = LAST[0]

    def counts(*arguments: Any) -> Any:
        calls.append(arguments)
        return HONEST[key, twist.name](*arguments)

    assert twisted(key, twist).judged(counts, 1).passed
    wanted: list[Any] = []
    for case in ON_THE_PAGE[key].cases(np.random.default_rng(1)):
        case.run(twist.standard(lambda *arguments: wanted.append(arguments) or HONEST[key, twist.name](*arguments)), *case.arguments)
    assert calls == wanted


def parts_of(key: str, twist: Twist) -> list[Twist]:
    return [part for part in ON_THE_PAGE[key].twists if part is not twist and part.sentence in twist.sentence]


PARTS = [
    (key, twist, part) for key, twist in EVERY if key not in OF_ORDERS and "judge" not in twist.changes for part in parts_of(key, twist)
]


def a_part_is_named(key: str, twist: Twist, part: Twist) -> None:
    feedback = twisted(key, twist).judged(HONEST[key, part.name])
    assert feedback.code == "twist-missed"
    assert feedback.messages == (f"your function does only this part of your change: {part.sentence}", twist.reminder)


@in_turn("key, twist, part", {key: (key, twist, part) for key, twist, part in PARTS}.values())
def test_a_part_of_a_change_is_named(key: str, twist: Twist, part: Twist) -> None:
    a_part_is_named(key, twist, part)


@pytest.mark.slow
@pytest.mark.parametrize("key", dict.fromkeys(key for key, *_ in PARTS))
def test_every_part_of_a_change_is_named(key: str) -> None:
    in_turn("twist, part", [rest for of, *rest in PARTS if of == key])(lambda twist, part: a_part_is_named(key, twist, part))()


def test_there_are_changes_of_several_parts() -> None:
    assert len(PARTS) > 20


@once_a_build
def test_a_function_that_is_wrong_on_the_page_as_well_is_told_what_is_wrong(key: str, twist: Twist) -> None:
    feedback = twisted(key, twist).judged(lambda *arguments: 5)
    assert feedback.code != "twist-missed"
    assert feedback.messages[-1] == twist.told


def test_what_a_function_prints_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    def prints(orders: list[str]) -> list[int]:
        print("called")
        return [0 for _ in orders]

    twist = ON_THE_PAGE["lab03.t3"].twists[0]
    assert not twisted("lab03.t3", twist).judged(prints).passed
    shown = capsys.readouterr().out
    assert not ON_THE_PAGE["lab03.t3"].judged(prints).passed
    assert shown == capsys.readouterr().out


def test_an_endless_function_is_not_called_again() -> None:
    calls = []

    def late(*arguments: Any) -> None:
        calls.append(arguments)
        raise KeyboardInterrupt

    key, twist = EVERY[0]
    assert twisted(key, twist).judged(late).code in ENDED
    assert len(calls) == 1


@once_a_build
def test_the_source_of_the_library_fails(key: str, twist: Twist) -> None:
    if key in LIBRARY:
        assert twisted(key, twist).judged(LIBRARY[key]).code not in ("passed", "not-your-own", "signature")


@in_turn("key", dict.fromkeys(key for key, _ in EVERY))
def test_no_solution_of_one_twist_passes_under_another_one(key: str) -> None:
    twists = ON_THE_PAGE[key].twists
    passing = [
        (twist.name, honest.name)
        for twist in twists
        for honest in twists
        if honest is not twist and not any(twisted(key, twist).codes(HONEST[key, honest.name]))
    ]
    assert passing == []


# Programs that make a mistake on the page, and do what a twist asks for.
RIGHT_UNDER_A_TWIST = {
    ("lab10.t4", "pair"): ["backwards-alone"],  # the argument backward is F + B
    ("lab10.t4", "peaks"): ["last-device-warms-up"],  # a peak is the warm-up and one more
}


def a_known_mistake_fails(key: str, twist: Twist) -> None:
    mine = twisted(key, twist)
    passing = [mistake.code for mistake in mine.mistakes if not any(mine.codes(mistake.result))]
    assert passing == RIGHT_UNDER_A_TWIST.get((key, twist.name), [])


@in_turn("key, twist", FEW)
def test_the_program_of_a_known_mistake_fails(key: str, twist: Twist) -> None:
    a_known_mistake_fails(key, twist)


@pytest.mark.slow
@in_turn("key, twist", EVERY)
def test_the_program_of_a_known_mistake_fails_under_every_twist(key: str, twist: Twist) -> None:
    a_known_mistake_fails(key, twist)


@once_a_build
def test_a_result_of_another_shape_gets_feedback(key: str, twist: Twist) -> None:
    mine = twisted(key, twist)
    for result in (None, 5, "x", [], {}, [[]], [None], [5], {"x": 5}, {5}, object(), [object()], float("nan"), (1, 2), iter([1])):
        feedback = mine.judged(lambda *arguments, result=result: result)
        assert not feedback.passed
        assert feedback.code != "raises", (result, feedback.messages)


# Right results with something that is in no right result; the judge can read them.
STRANGERS: list[tuple[str, Function, str]] = [
    ("lab01.t6", lambda sent: [*sent, (1_000_000, 0, "ring")], "no-such-rank"),
    ("lab01.t6", lambda sent: [*sent, (0, 1_000_000, "activation")], "no-such-rank"),
    ("lab02.t5", lambda lines: [*lines, "0F0 0B0"], "another-size"),
    ("lab02.t5", lambda lines: lines[:1], "another-size"),
    ("lab02.t5", lambda lines: [f"{line} 0F99" for line in lines], ""),
    ("lab12.t5", lambda lines: [*lines, "0F0 0B0"], "another-size"),
    ("lab12.t5", lambda lines: [f"{line} 0F99" for line in lines], ""),
    ("lab02.t6", lambda times: times | {"99F0": (6, 7)}, "not-in-the-orders"),
    ("lab02.t6", lambda times: times | {"00F0": (6, 7)}, "not-in-the-orders"),
    ("lab02.t6", lambda times: times | {"forward": (6, 7)}, "not-in-the-orders"),
    ("lab03.t3", lambda peaks: [*peaks, 1], "another-size"),
    ("lab03.t3", lambda peaks: [str(peak) for peak in peaks], "not-a-number"),
]


@in_turn("key, spoil, code", STRANGERS)
def test_a_stranger_in_a_result_is_told_as_on_the_page(key: str, spoil: Function, code: str) -> None:
    for twist in (ON_THE_PAGE[key].twists[0], ON_THE_PAGE[key].twists[-1]):
        honest = HONEST[key, twist.name]
        feedback = twisted(key, twist).judged(lambda *arguments, honest=honest: spoil(honest(*arguments)))
        assert not feedback.passed
        assert feedback.code == code or (not code and feedback.code != "raises"), feedback.messages


@once_a_build
def test_an_error_of_the_function_is_told_as_its_own(key: str, twist: Twist) -> None:
    def breaks(*arguments: Any) -> None:
        raise ArithmeticError("of my own")

    feedback = twisted(key, twist).judged(breaks)
    assert feedback.code == "raises"
    assert '`raise ArithmeticError("of my own")`, raises ArithmeticError: of my own' in feedback.messages[0]


@in_turn("key, twist", EVERY)
def test_an_error_of_the_function_goes_through_every_twist_untouched(key: str, twist: Twist) -> None:
    """A function in another process reports its failures so."""

    def relays(*arguments: Any) -> None:
        raise HybridLabError("too slow", "too-slow")

    case = ON_THE_PAGE[key].public_cases[-1]
    with pytest.raises(HybridLabError, match="too slow"):
        case.run(twist.standard(relays), *deepcopy(case.arguments))


class Elsewhere:
    """A function that runs elsewhere: an object without a name, which only can be called."""

    __slots__ = ("_function",)

    def __init__(self, function: Function) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


@once_a_build
def test_a_callable_object_passes_as_a_function_does(key: str, twist: Twist) -> None:
    mine = twisted(key, twist)
    few = replace(mine, cases=lambda rng: mine.public_cases[:12])
    assert few.judged(Elsewhere(HONEST[key, twist.name])).passed


@once_a_build
def test_a_function_with_other_arguments_is_refused_by_its_own_signature(key: str, twist: Twist) -> None:
    assert twisted(key, twist).judged(lambda: None).code == "signature"


SPOILS: dict[str, Function] = {
    "clears a list": lambda given: given.clear(),
    "turns a list round": lambda given: given.reverse(),
    "doubles the first": lambda given: given.__setitem__(0, 2 * given[0]),
    "doubles the last": lambda given: given.__setitem__(-1, 2 * given[-1]),
    "halves the last": lambda given: given.__setitem__(
        -1, given[-1][: len(given[-1]) // 2] if isinstance(given[-1], str) else given[-1] / 2
    ),
    "splits the lines": lambda given: given.__setitem__(slice(None), [each.split() if isinstance(each, str) else [each] for each in given]),
}


@in_turn("key, twist", [each for each in EVERY if each[0] in OF_LISTS])
def test_a_function_that_changes_its_arguments_is_refused(key: str, twist: Twist) -> None:
    mine, honest = twisted(key, twist), HONEST[key, twist.name]
    case = mine.public_cases[-1]
    # where all times are the same, a list that is turned round is as before
    given = [[1.0, 3.0, 5.0, 8.0] if argument in ([1] * 4, [2] * 4) else argument for argument in case.arguments]
    one = replace(mine, cases=lambda rng: [replace(case, arguments=tuple(given))])
    for place in (place for place, argument in enumerate(given) if isinstance(argument, list)):
        for how, spoil in SPOILS.items():

            def spoils(*arguments: Any, place: int = place, spoil: Function = spoil) -> Any:
                result = honest(*arguments)
                spoil(arguments[place])
                return result

            assert one.judged(spoils).code == "changes-its-argument", (place, how)
