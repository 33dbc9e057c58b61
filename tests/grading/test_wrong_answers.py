"""Wrong answers that the tests of the labs list: the grader gives each of them no points, or those of its partial credit."""

import ast
import sys
from collections.abc import Callable, Iterator
from inspect import getsource, isfunction, ismodule
from textwrap import dedent
from typing import Any

import pytest
from cases import in_turn
from graded_class import lab_spec, needs_bubblewrap, shared_launcher
from test_tasks_answers import listed

from hybridlab.course.checking.answers import plain_values
from hybridlab.course.checking.checking import Instance, check_with
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.marking import Attempts, Outcome, Player, _judge
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.sandbox import Limits
from hybridlab.course.tasks import TASKS, Student, Task

STUDENTS = ("ana", "ben")
BUILDS = [key for key, task in TASKS.items() if task.kind == "build"]
NUMBERS = [key for key, task in TASKS.items() if task.kind == "number"]


def wrong_answers(key: str) -> list[tuple[Any, str]]:
    return [(answer, code) for task, answer, code, *_ in listed("WRONG") if task == key]


def personal(task: Task) -> list[Instance]:
    return [task.personal(Student(name).seed(task.key)) for name in STUDENTS]


# Parts of the names of twists, and the code of the mistake that a function makes without the twist if it does what the twist asks for.
ASKED_FOR = {"backwards": "wrong-direction", "loss-last": "exchanged", "true-for-a-fault": "inverted"}


def asked_for(task: Task, asked: Instance) -> set[str]:
    """Codes of what is a mistake without a twist, and what the twist asks for."""
    codes = {mistake.code for mistake in task.instance(None).data.mistakes} - {mistake.code for mistake in asked.data.mistakes}
    return codes | {code for name, code in ASKED_FOR.items() if name in getattr(asked.data.twist, "name", "")}


def is_right_by_chance(asked: Instance, answer: Any) -> bool:
    """Whether the wrong answer to the question on the page is right for the sizes of a student."""
    numbers = asked.data.numbers
    try:
        parts = [plain_values(answer)] if len(numbers) == 1 else plain_values(answer)
        return all(number.meets(number.read(part), number.truth) for number, part in zip(numbers, parts, strict=True))
    except (TypeError, ValueError):
        return False


@in_turn("key", NUMBERS)
def test_a_wrong_number_is_right_for_own_sizes_only_by_chance(key: str) -> None:
    """On the page, each of them gets the code of its mistake: the tests of the labs show it."""
    task = TASKS[key]
    assert wrong_answers(key)
    for answer, _ in wrong_answers(key):
        for asked in personal(task):
            assert check_with(task, asked, answer).passed is is_right_by_chance(asked, answer), answer


class WithoutAnnotations(ast.NodeTransformer):
    """Takes annotations and docstrings out of a program, because names in them would be missing in a worker."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        return ast.copy_location(ast.Assign([node.target], self.visit(node.value)), node) if node.value else None


def program(function: Callable[..., Any], seen: set[str]) -> Iterator[str]:
    """Yield the source of a function after what it needs. An error if that is more than numpy and the standard library."""
    tree = WithoutAnnotations().visit(ast.parse(dedent(getsource(function))))
    for name in sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & set(function.__globals__) - seen):
        seen.add(name)
        value = function.__globals__[name]
        module = value.__name__ if ismodule(value) else getattr(value, "__module__", "")
        if isfunction(value) and value.__closure__ is None and "<" not in value.__qualname__ and not module.startswith("hybridlab"):
            yield from program(value, seen)
            if value.__name__ != name:
                yield f"{name} = {value.__name__}"
        elif ismodule(value) and (module == "numpy" or module in sys.stdlib_module_names):
            yield f"import {module} as {name}"
        elif module.partition(".")[0] in sys.stdlib_module_names:
            yield f"from {module} import {value.__name__} as {name}"
        elif ast.unparse(ast.parse(repr(value))) and ast.literal_eval(repr(value)) == value:
            yield f"{name} = {value!r}"
    yield ast.unparse(ast.fix_missing_locations(tree))


def programs(key: str) -> Iterator[tuple[str, str]]:
    """Yield the source of each wrong program of a task that can stand in a cell, and the code of its mistake."""
    for answer, code in wrong_answers(key):
        if not isfunction(answer) or answer.__closure__ or "<" in answer.__qualname__:
            continue
        try:
            lines = list(program(answer, {answer.__name__}))
        except (ValueError, SyntaxError, AttributeError, OSError):
            continue  # it uses the library, or has no source
        yield "\n".join([*lines, f"check({key!r}, {answer.__name__})"]), code


def judged_in_a_worker(key: str, cells: list[CodeCell]) -> Iterator[tuple[int, float, str]]:
    """Hand in several programs, and yield for each its cell, its share of the points and its code, for the page and for a student."""
    task = TASKS[key]
    for asked, seed in ((task.instance(None), None), (personal(task)[0], 5)):
        kind = asked.data.worker
        budget = Budget(Limits().with_time(20))  # for all wrong programs of a task in one notebook
        open_session: Any = lambda kind=kind, budget=budget: shared_launcher().open(kind, budget)  # noqa: E731
        player = Player(cells, lab_spec(key[:5]), open_session, Attempts(budget))
        try:
            outcome = player.play()
            assert isinstance(outcome, Outcome)
            for hand_in in outcome.handed[key]:
                feedback, credit = _judge(task, asked, player, outcome, hand_in, seed)
                yield hand_in.cell, 1.0 if feedback.passed else credit.share if credit else 0.0, feedback.code if seed is None else ""
        finally:
            player.close()


def all_fail(key: str, most: int | None = None) -> None:
    excused = asked_for(TASKS[key], personal(TASKS[key])[0])
    wrong = [(source, code) for source, code in programs(key) if code not in excused][:most]
    if not wrong:  # all programs of this task use what is not in a cell; the last test here counts the others
        return
    found = list(judged_in_a_worker(key, [CodeCell(source, key) for source, _ in wrong]))
    assert [cell for cell, *_ in found] == [*range(len(wrong))] * 2
    for cell, share, code in found:
        source, expected = wrong[cell]
        assert share <= max((credit.share for credit in TASKS[key].partial_credit), default=0.0) < 1, source
        assert code in ("", expected, *ON_A_BUSY_MACHINE.get(key, ())), source


ON_A_BUSY_MACHINE = {"lab08.t5": ("waits-for-ever",)}  # a program that waits with a time limit can be ended before it gives up
IN_A_CELL = {"lab02.t5": 4}  # how many programs the quick test tries


@needs_bubblewrap
@in_turn("key", IN_A_CELL)
def test_a_wrong_program_in_a_worker_earns_nothing(key: str) -> None:
    all_fail(key, IN_A_CELL[key])


@needs_bubblewrap
@pytest.mark.slow
@in_turn("key", [key for key in BUILDS if key != "lab05.t6"])  # whose programs are lambdas
def test_all_wrong_programs_in_a_worker_earn_nothing(key: str) -> None:
    all_fail(key)


def passes(task: Task, asked: Instance, answer: Any) -> bool:
    """Whether an answer is right. The first case that a function fails is enough, because the words about the others are not read here."""
    return not (callable(answer) and any(asked.data.codes(answer))) and check_with(task, asked, answer).passed


@pytest.mark.slow
@in_turn("key", [key for key in BUILDS if TASKS[key].instance(None).data.worker != "threads"])
def test_a_wrong_program_earns_nothing_with_own_twists(key: str) -> None:
    """Wrong programs with threads run in workers alone: here a thread that waits for ever would keep this process from its end."""
    task = TASKS[key]
    for asked in personal(task):
        # a program that keeps its state would be another one in the tests after this one
        tried = [(answer, code) for answer, code in wrong_answers(key) if code != "keeps-its-state"]
        passing = {code for answer, code in tried if passes(task, asked, answer)}
        assert passing <= asked_for(task, asked), getattr(asked.data.twist, "name", "on the page")


def test_many_wrong_programs_can_stand_in_a_cell() -> None:
    assert sum(len(list(programs(key))) for key in BUILDS) >= 50
    assert sum(min(most, len(list(programs(key)))) for key, most in IN_A_CELL.items()) == sum(IN_A_CELL.values())
