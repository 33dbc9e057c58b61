"""Make small changes ('mutants') of the worked solutions of coding tasks, and print those that no case catches.

    python tests/labs/solution_mutants.py lab02.t6 lab05     # a task, and all coding tasks of a lab; without arguments: all labs
    python tests/labs/solution_mutants.py --all lab02.t6     # every mutant that the tool can make, not only a drawn part

Each mutant is tried on the public cases and on the hidden cases of some seeds, in a process of its own with a limit of CPU seconds. A
mutant that does not end is caught. A mutant that passes survives. ``equivalent_mutants.toml`` lists survivors that are right programs, each
with the reason: under the key of the task, the changed line before and after the change. The command prints all other survivors, the
mutants that only hidden cases catch, and the listed mutants that are caught. It ends with status 1 if it prints any.
"""

import ast
import os
import random
import re
import resource
import signal
import sys
import tomllib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from copy import deepcopy
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests"), str(ROOT / "book/_ext")]  # as pytest does; notebooks.py imports folds

from solutions import handed_in  # noqa: E402 - it can be imported only now

from hybridlab.course.grading.labs import reference  # noqa: E402
from hybridlab.course.grading.specs import spec_of  # noqa: E402
from hybridlab.course.tasks import TASKS, Build  # noqa: E402

EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
MUTANTS = 40  # of each solution
LEAST = 30  # mutants of each solution; if single changes give fewer, two changes are made
HIDDEN_SEEDS = (1, 2, 3)
MOST_BYTES = 8 << 30  # of address space: a loop that does not end can fill a list
MOST_WAITING = 120  # seconds on the clock: a thread that waits for ever uses no CPU
NOTHING_ADDED = re.compile(r"[+-] 0\b|\+ 1 - 1|- 1 \+ 1")  # two changes that undo each other
BINARY = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add, ast.Div),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div, ast.Mod),
    ast.Mod: (ast.FloorDiv,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
COMPARED = {
    ast.Lt: (ast.LtE, ast.Gt, ast.NotEq),
    ast.LtE: (ast.Lt, ast.GtE, ast.Eq),
    ast.Gt: (ast.GtE, ast.Lt, ast.NotEq),
    ast.GtE: (ast.Gt, ast.LtE, ast.Eq),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
OTHER_NAME = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "sum": "max",
    "abs": "asarray",
    "rint": "trunc",
    "floor": "ceil",
    "ceil": "floor",
    "cumsum": "asarray",
    "repeat": "resize",
    "insert": "append",
    "zip": "zip_longest",
    "notify_all": "notify",
}


@dataclass(frozen=True)
class Mutant:
    """A changed solution: the code of its cell, and its changed lines as ``"before -> after"``."""

    source: str
    change: str


def _expressions(node: ast.AST, parameters: Sequence[str], texts: Sequence[str]) -> Iterator[tuple[str, ast.AST]]:
    """Yield kinds of changes, each with the node that replaces ``node``."""
    match node:
        case ast.BinOp(left, operator, right):
            for other in BINARY.get(type(operator), ()):
                yield "operator", ast.BinOp(left, other(), right)
            yield from (("operand dropped", kept) for kept in (left, right))
            if not isinstance(operator, (ast.Add, ast.Mult)):
                yield "exchanged", ast.BinOp(right, operator, left)
        case ast.AugAssign(target, operator, value):
            for other in BINARY.get(type(operator), ()):
                yield "operator", ast.AugAssign(target, other(), value)
            yield "sum dropped", ast.Assign([target], value)
        case ast.UnaryOp(_, operand):
            yield "operand dropped", operand
        case ast.Compare(left, [operator], [right]):
            for other in COMPARED[type(operator)]:
                yield "comparison", ast.Compare(left, [other()], [right])
        case ast.BoolOp(operator, values):
            yield "and/or", ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
            yield from (("condition dropped", value) for value in values)
        case ast.Constant(bool() as value):
            yield "constant", ast.Constant(not value)
        case ast.Constant(int() as value):
            yield from (("constant", ast.Constant(other)) for other in (value + 1, value - 1))
        case ast.Constant(float() as value):
            yield from (("constant", ast.Constant(other)) for other in (value + 1.0, value - 1.0))
        case ast.Constant(str() as value) if value in texts:
            yield "text", ast.Constant(texts[(texts.index(value) + 1) % len(texts)])
        case ast.Name(name, ast.Load()) if name in parameters:
            yield "argument", ast.Name(parameters[(parameters.index(name) + 1) % len(parameters)], ast.Load())
        case ast.Tuple(first, ast.Load()) if len(first) > 1:
            yield "exchanged", ast.Tuple([first[1], first[0], *first[2:]], ast.Load())
        case ast.Slice(lower, upper, step):
            one = ast.Constant(1)
            yield from (("bounds", ast.Slice(*cut)) for cut in ((None, upper, step), (lower, None, step), (lower, upper, None)))
            if lower:
                yield "bounds", ast.Slice(ast.BinOp(lower, ast.Add(), one), upper, step)
            if upper:
                yield from (("bounds", ast.Slice(lower, ast.BinOp(upper, by, one), step)) for by in (ast.Add(), ast.Sub()))
        case ast.Subscript(value, ast.Constant(0), context):
            yield "first/last", ast.Subscript(value, ast.UnaryOp(ast.USub(), ast.Constant(1)), context)
        case ast.Subscript(value, ast.UnaryOp(ast.USub(), ast.Constant(1)), context):
            yield "first/last", ast.Subscript(value, ast.Constant(0), context)
        case ast.IfExp(test, body, orelse):
            yield from (("condition", kept) for kept in (body, orelse))
            yield "condition", ast.IfExp(test, orelse, body)
        case ast.comprehension(target, iterated, conditions) if conditions:
            yield "condition dropped", ast.comprehension(target, iterated, conditions[1:], 0)
        case ast.Call():
            yield from _calls(node)


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    """Yield changes of a call: another function, other arguments, the value without the call, and other bounds of a range."""
    function, arguments, keywords = node.func, node.args, node.keywords
    name = function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    if name in OTHER_NAME:
        changed = deepcopy(function)
        setattr(changed, "id" if isinstance(function, ast.Name) else "attr", OTHER_NAME[name])
        kept = arguments[1:] if name == "insert" else arguments  # append takes no place
        yield "function", ast.Call(changed, kept, keywords)
    if name == "pop" and arguments:
        yield "first/last", ast.Call(function, arguments[1:], keywords)
    for place in range(len(arguments) - 1 if name not in ("min", "max") else 0):
        swapped = [*arguments[:place], arguments[place + 1], arguments[place], *arguments[place + 2 :]]
        yield "exchanged", ast.Call(function, swapped, keywords)
    for place, argument in enumerate(arguments if len(arguments) > 1 else ()):
        without = [*arguments[:place], *arguments[place + 1 :]]
        yield "argument dropped", argument if name in ("min", "max") else ast.Call(function, without, keywords)
    for place in range(len(keywords)):
        yield "argument dropped", ast.Call(function, arguments, [*keywords[:place], *keywords[place + 1 :]])
    if name == "range":
        for place, argument in enumerate(arguments[:2]):
            for by in (ast.Add(), ast.Sub()):
                moved = ast.BinOp(argument, by, ast.Constant(1))
                yield "bounds", ast.Call(function, [*arguments[:place], moved, *arguments[place + 1 :]], keywords)
    elif isinstance(function, ast.Attribute) and not (isinstance(function.value, ast.Name) and function.value.id == "np"):
        yield "call dropped", function.value
    elif arguments:
        yield "call dropped", arguments[0]


def _statements(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    """Yield kinds of changes of a statement. The node None drops the statement."""
    match node:
        case ast.If(test, body, orelse) | ast.While(test, body, orelse):
            yield "condition", type(node)(ast.UnaryOp(ast.Not(), test), body, orelse)
            yield "condition", type(node)(ast.Constant(value=False), body, orelse)
            if isinstance(node, ast.If):
                yield "condition", ast.If(ast.Constant(value=True), body, orelse)
    if isinstance(node, ast.stmt) and not isinstance(node, (ast.Return, ast.FunctionDef, ast.With, ast.Try)):
        yield "statement dropped", None


class _Replace(ast.NodeTransformer):
    """Put another node (None for no node) in place of one node."""

    def __init__(self, node: ast.AST, other: ast.AST | None) -> None:
        self.node, self.other = node, other

    def visit(self, node: ast.AST) -> Any:
        if node is self.node:
            return self.other
        self.generic_visit(node)
        if getattr(node, "body", None) == []:  # its only statement was dropped
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
        return node


def _changed(source: str) -> Iterator[str]:
    """Yield the code of a cell with one change in a function, evenly over the kinds of changes. The order is the same in each call."""
    tree = ast.parse(source)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    parameters = [each.arg for function in functions for each in function.args.args]
    nodes = [node for function in functions for node in ast.walk(function)]
    texts = list(dict.fromkeys(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)))
    kinds: dict[str, list[tuple[ast.AST, ast.AST | None]]] = {}
    for node in nodes:
        for kind, other in [*_expressions(node, parameters, texts), *_statements(node)]:
            kinds.setdefault(kind, []).append((node, other))
    for kind in sorted(kinds):
        random.Random(0).shuffle(kinds[kind])  # noqa: S311 - no secret
    for changes in zip_longest(*(kinds[kind] for kind in sorted(kinds))):
        for node, other in filter(None, changes):
            (copied, place), replaced = deepcopy((tree, node)), deepcopy(other)
            yield ast.unparse(ast.fix_missing_locations(_Replace(place, replaced).visit(copied)))


def mutants_of(source: str, count: int = MUTANTS) -> list[Mutant]:
    """Return different mutants of a solution: at most ``count``. If there are too few, some have two changes.

    Parameters
    ----------
    source : str
        The code of the cell with the solution.
    """
    published = ast.unparse(ast.parse(source))
    found = dict.fromkeys(_valid(_changed(published), published))
    if len(found) < LEAST:
        rounds = zip_longest(*(_valid(_changed(one), published) for one in list(found)))
        found |= dict.fromkeys(other for row in rounds for other in row if other and not NOTHING_ADDED.search(other))
    return [Mutant(one, _difference(published, one)) for one in list(found)[:count]]


def _valid(sources: Iterator[str], published: str) -> Iterator[str]:
    for one in sources:
        try:
            with warnings.catch_warnings(action="ignore"):
                compile(one, "mutant", "exec")
        except SyntaxError:  # such as a number to which a value is assigned
            continue
        if one != published:
            yield one


def _difference(published: str, mutant: str) -> str:
    """Return the lines that differ, as ``"before -> after"``; several lines are joined by " / "."""
    before, after = ([line.strip() for line in text.splitlines()] for text in (published, mutant))
    changes = [each for each in SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes() if each[0] != "equal"]
    return "; ".join(f"{' / '.join(before[i:j])} -> {' / '.join(after[k:n])}".strip() for _, i, j, k, n in changes)


def _source(key: str) -> str:
    return spec_of(reference(key[:5])).solutions[key]


def results_of(key: str, count: int = MUTANTS) -> Iterator[tuple[Mutant, str]]:
    """Yield each mutant of a coding task's solution with its result.

    The result is "caught" (by a public case), "survives the public cases" (and only a hidden case catches it) or "survives".
    """
    source = _source(key)
    build: Build = TASKS[key].instance(None).data
    before = resource.getrusage(resource.RUSAGE_SELF)
    for seed in (0, *HIDDEN_SEEDS):
        feedback = build.check(handed_in(source)[1], seed)
        assert feedback.passed, f"the worked solution of {key} fails with seed {seed}: {feedback.messages}"
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime - before.ru_utime + used.ru_stime - before.ru_stime
    mutants = mutants_of(source, count)
    assert len(mutants) >= LEAST, f"{key} has only {len(mutants)} mutants"
    for mutant in mutants:
        yield mutant, _try(build, mutant.source, 2 + int(3 * seconds))


def _try(build: Build, source: str, seconds: int) -> str:
    """Return the result of a mutant that runs in a child of this process. The child writes one byte for each seed that has passed."""
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        os.close(read)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        signal.alarm(MOST_WAITING)
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):  # noqa: PTH123
            try:
                for seed in (0, *HIDDEN_SEEDS):
                    # codes() stops at the first case that fails; check() also calls the function again
                    function = handed_in(source)[1]
                    if next(build.codes(function, seed), None) or not build.check(function, seed).passed:
                        break
                    os.write(write, b".")
            finally:
                os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        passed = len(pipe.read())
    os.waitpid(child, 0)
    return "survives" if passed == 1 + len(HIDDEN_SEEDS) else "survives the public cases" if passed else "caught"


def complaints(key: str, count: int = MUTANTS) -> Iterator[str]:
    """Yield a line for each mutant of a coding task that survives and is not listed, and for each listed one that is caught."""
    listed = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get(key, {})
    results = list(results_of(key, count))
    caught = {mutant.change for mutant, result in results if result != "survives"}
    threads = TASKS[key].instance(None).data.threads  # then the result of a mutant can depend on which thread comes first
    known = {mutant.change for mutant in mutants_of(_source(key), sys.maxsize)}
    for mutant, result in results:
        if result != "caught" and not ((result == "survives" or threads) and mutant.change in listed):
            yield f"{key} {result}: {mutant.change}"
    for change in listed:
        if (change in caught and not threads) or change not in known:
            yield f"{key} listed, but {'caught' if change in caught else 'no mutant'}: {change}"


def main(arguments: Sequence[str]) -> int:
    """Print the complaints about the mutants of the named tasks and labs. Return the exit status."""
    names = [each for each in arguments if each != "--all"]
    keys = [key for key, task in TASKS.items() if task.kind == "build" and (not names or {key, key[:5]} & set(names))]
    count = sys.maxsize if "--all" in arguments else MUTANTS
    found = 0
    for key in keys:
        for line in complaints(key, count):
            print(line, flush=True)
            found += 1
    return int(found > 0 or not keys)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
