"""Find coding tasks ('builds') that were solved with one program: a published one, one of the project's tests, or another student's.

Two functions are alike if they are equal without names, layout, comments, docstrings and annotations. Whether a student has copied is for a
person to find out. So a likeness changes no mark: it only adds a sentence to ``needs_person``.
"""

import ast
import builtins
import contextlib
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.marks import Marks
from hybridlab.course.grading.notebook import CodeCell, read_submission
from hybridlab.course.grading.specs import LabSpec, spec_of
from hybridlab.errors import HybridLabError

LEAST = 50  # nodes of a syntax tree; everyone writes smaller functions alike, so they have no fingerprint
MOST_NODES = 3_000  # nodes; a larger program is not compared, so that a notebook cannot delay the class; the largest published one has 308
MOST_SOURCE = 100_000  # characters; a notebook with more code is not compared; the longest lab has fewer than 16,000
LONGEST_CHAIN = 9  # assignments such as ``f = g`` that are followed
MOST_NAMED = 3  # the most files that a sentence names
TESTS = Path(__file__).resolve().parents[3] / "tests" / "labs"  # only a checkout has this folder
NOT_READABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # errors of the parser, and of a syntax tree that is too deep
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
WHOLE, PART = "the same program as in", "a function as in"
# the fingerprints of a coding task's program: of the function with its helpers (WHOLE), and of each function in it (PART)
Prints = frozenset[tuple[str, str]]


def fingerprint_of(source: str, name: str) -> str:
    """Return the fingerprint of a function with all helpers that it calls; an empty text if it is too small or cannot be read.

    Parameters
    ----------
    source : str
        Code that defines the function and the helpers.
    name : str
        The name of the function.

    Examples
    --------
    >>> one = '''
    ... def f(lines):
    ...     return [g(line, first=2 * place) for place, line in enumerate(lines)]
    ... def g(line, first):
    ...     words = line.split()
    ...     return [int(word[1:]) + first for word in words[::-1] if word.startswith(("F", "B"))]
    ... '''
    >>> two = '''
    ... def owner(text, shift):  # the same with other names
    ...     ops = text.split(); return [int(op[1:]) + shift for op in ops[::-1] if op.startswith(("F", "B"))]
    ... def f(orders):
    ...     "Return the microbatches."
    ...     return [owner(order, shift=2 * device) for device, order in enumerate(orders)]
    ... '''
    >>> fingerprint_of(one, "f") == fingerprint_of(two, "f") != ""
    True
    >>> fingerprint_of(two, "f") == fingerprint_of(two.replace("::-1", "::-2"), "f")
    False
    """
    tree = _parsed(source)
    return dict(_prints(ast.Name(name), _Names(_definitions(tree), _imports(tree)))).get(WHOLE, "")


def add_likenesses(marks: Sequence[Marks], found: Mapping[str, Sequence[Path]], lab: str) -> list[Marks]:
    """Return the marks of a class with sentences on programs that are alike, added to ``needs_person``. Points stay as they are.

    Parameters
    ----------
    marks : sequence of Marks
        The marks of the class, without sentences of an earlier call.
    found : mapping of str to sequence of Path
        The files of each student. Students with several files are left out, because a person has to choose a file first.
    lab : str
        The lab, such as ``"lab02"``.
    """
    names = [path.name for paths in found.values() for path in paths]
    files: dict[str, str] = {}  # the name of each student's file, with its folder if several files have this name
    cells: dict[str, Sequence[CodeCell]] = {}
    for student, paths in found.items():
        if len(paths) == 1:
            path = paths[0]
            files[student] = path.name if names.count(path.name) == 1 else f"{path.parent.name}/{path.name}"
            with contextlib.suppress(HybridLabError):  # the marks already say why the file cannot be read
                cells[files[student]] = read_submission(path).cells
    sentences = likenesses(cells, spec_of(reference(lab)), known_programs(lab))
    return [
        replace(each, needs_person="; ".join([*filter(None, [each.needs_person]), *sentences.get(files.get(each.student, ""), [])]))
        for each in marks
    ]


def likenesses(cells: Mapping[str, Sequence[CodeCell]], spec: LabSpec, known: Mapping[str, Mapping[str, Prints]]) -> dict[str, list[str]]:
    """Return sentences for each file with a likeness. They name the tasks and both files. The order of the files does not matter.

    Parameters
    ----------
    cells : mapping of str to sequence of CodeCell
        The code cells of each student's file, by the name of the file.
    spec : LabSpec
        The lab.
    known : mapping of str to mapping of str to Prints
        The fingerprints of known programs, by their file and the task: the result of :func:`known_programs`.
    """
    programs = {file: programs_in(cells[file], spec) for file in sorted(cells)}
    indices = _index(known), _index(programs)  # known programs first: if all students have copied one, each of them is told this one
    found: dict[str, list[str]] = {}
    for file, tasks in programs.items():
        alike: dict[str, list[str]] = {}  # the tasks of each sentence
        for key, prints in tasks.items():
            for index, kind in itertools.product(indices, (WHOLE, PART)):
                others = {other for each in prints if each[0] == kind for other in index.get((key, each), ())}
                if names := sorted(others - {file}):
                    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
                    alike.setdefault(f"{kind} {', '.join(names[:MOST_NAMED])}{more}", []).append(key)
                    break
        if alike:
            found[file] = [f"{', '.join(keys)} in {file}: names and layout aside, {what}" for what, keys in alike.items()]
    return found


@cache
def known_programs(lab: str, tests: Path = TESTS) -> dict[str, dict[str, Prints]]:
    """Return the fingerprints of the published programs of a lab, and of those in the project's tests, by their file and the task."""
    spec = spec_of(reference(lab))
    published = programs_in([CodeCell(source, key) for key, source in spec.solutions.items()], spec)
    files = [path for path in sorted((tests / lab).glob("*.py")) if not path.name.startswith("test_")]
    tested = {f"tests/labs/{lab}/{path.name}": dict.fromkeys(published, _prints_of_a_file(path)) for path in files}
    return {f"the published {reference(lab).name}": published, **tested}


def programs_in(cells: Iterable[CodeCell], spec: LabSpec) -> dict[str, Prints]:
    """Return the fingerprints of the programs that cells hand in, by coding task. Unchanged cells of the lab are not part of a program."""
    listed = list(cells)
    if sum(len(cell.source) for cell in listed) > MOST_SOURCE:
        return {}
    given = {tuple(source.split()) for source in (*(cell.source for cell in spec.given), *spec.stubs.values())}
    trees = [(cell, _parsed(cell.source)) for cell in listed if tuple(cell.source.split()) not in given]
    imported = {name: what for tree in (*map(_parsed, spec.imports), *(tree for _, tree in trees)) for name, what in _imports(tree).items()}
    defined = {name: node for _, tree in trees for name, node in _definitions(tree).items()}
    found = {}
    for key in (task.key for task in spec.tasks if task.kind == "build"):
        if answers := [tree for cell, tree in trees if key in spec.keys_in(cell)]:
            handed_in = _handed_in(answers[-1], key) or _handed_in(_parsed(spec.hand_ins[key]), key)
            found[key] = _prints(handed_in[-1], _Names({**defined, **_definitions(answers[-1])}, imported))
    return found


def _index(files: Mapping[str, Mapping[str, Prints]]) -> dict[tuple[str, tuple[str, str]], list[str]]:
    """Return the files in which a task has a fingerprint, by the task and the fingerprint."""
    index: dict[tuple[str, tuple[str, str]], list[str]] = {}
    for file, tasks in files.items():
        for key, prints in tasks.items():
            for each in prints:
                index.setdefault((key, each), []).append(file)
    return index


def _prints(handed_in: ast.expr, names: "_Names") -> Prints:
    """Return the fingerprints of an expression, such as the name of a function, with all that it uses."""
    try:
        whole = _Text(names, follow=True)
        whole.write(handed_in)
        for name in whole.followed:  # the list grows while the helpers are written
            whole.write(names.defined[name])
        functions = [each for name in whole.followed for each in ast.walk(names.defined[name]) if isinstance(each, FUNCTIONS)]
        return frozenset(each for each in ((WHOLE, whole.fingerprint()), *_parts(functions, names)) if each[1])
    except NOT_READABLE:
        return frozenset()


def _parts(functions: Iterable[ast.AST], names: "_Names") -> Iterator[tuple[str, str]]:
    """Yield the fingerprint of each function without its helpers; an empty text for a small function."""
    for function in functions:
        text = _Text(names, follow=False)
        text.write(function)
        yield PART, text.fingerprint()


def _prints_of_a_file(path: Path) -> Prints:
    tree = _parsed(path.read_text(encoding="utf-8"))
    functions = (each for each in ast.walk(tree) if isinstance(each, FUNCTIONS))
    return frozenset(each for each in _parts(functions, _Names(_definitions(tree), _imports(tree))) if each[1])


def _parsed(source: str) -> ast.Module:
    """Return the syntax tree of a cell; an empty one if the cell cannot be read. Lines that only IPython understands are left out."""
    if len(source) > MOST_SOURCE:
        return ast.Module([], [])
    plain = "\n".join(line for line in source.splitlines() if not line.lstrip().startswith(("%", "!", "?")))
    for text in (source, plain):
        try:
            return ast.parse(text)
        except NOT_READABLE:
            continue
    return ast.Module([], [])


def _definitions(tree: ast.Module) -> dict[str, ast.AST]:
    """Return what each name of a cell stands for: a function, a class, or the expression that is assigned to the name."""
    found: dict[str, ast.AST] = {}
    statements = list(tree.body)
    for statement in statements:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[statement.name] = statement
            continue
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            found |= {target.id: statement.value for target in targets if isinstance(target, ast.Name)}
        for block in ("body", "orelse", "finalbody"):  # the list grows by the statements in blocks such as ``if``
            statements += getattr(statement, block, ())
    return found


def _imports(tree: ast.AST) -> dict[str, str]:
    """Return what each imported name stands for, such as ``"numpy"`` for ``np``."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                first = each.name.partition(".")[0]
                found[each.asname or first] = each.name if each.asname else first
        elif isinstance(node, ast.ImportFrom):
            found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return found


def _handed_in(tree: ast.Module, key: str) -> list[ast.expr]:
    """Return the answers to a task that a cell hands in: the second arguments of ``check``."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) > 1]
    checks = [node for node in calls if "check" in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))]
    return [node.args[1] for node in checks if isinstance(node.args[0], ast.Constant) and node.args[0].value == key]


@dataclass(frozen=True)
class _Names:
    """What the names of a notebook stand for: their definitions, and the modules and objects that are imported."""

    defined: Mapping[str, ast.AST]
    imported: Mapping[str, str]

    def resolved(self, name: str) -> str:
        """Return the name that a chain of assignments such as ``f = g`` ends in."""
        for _ in range(LONGEST_CHAIN):
            value = self.defined.get(name)
            if not (isinstance(value, ast.Name) and value.id in self.defined):
                break
            name = value.id
        return name


class _Text:
    """A text of syntax trees in which numbers stand for names, in the order of their first use.

    With ``follow``, the definitions of helpers are to be written after the trees that use them. Without it, helpers have numbers, too.
    """

    def __init__(self, names: _Names, *, follow: bool) -> None:
        self._names, self._follow = names, follow
        self._words: list[str] = []
        self._scopes: list[dict[str, str]] = []  # of the functions around: each name, and the number that stands for it
        self._numbers = itertools.count()
        self._free: dict[str, str] = {}
        self.followed: list[str] = []
        self._size = 0

    def fingerprint(self) -> str:
        """Return the digest of the text; an empty text if the trees are too small."""
        return hashlib.sha256("\n".join(self._words).encode("utf-8", "surrogatepass")).hexdigest() if self._size >= LEAST else ""

    def write(self, node: ast.AST) -> None:
        """Add a syntax tree to the text."""
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass, ast.Global, ast.Nonlocal)) or _says_nothing(node):
            return
        self._size += 1
        if self._size > MOST_NODES:
            raise ValueError("this program is too large to be compared")
        if self._scopes and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._words.append(self._word(node.name))
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self._write_function(node)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._enter(each for generator in node.generators for each in ast.walk(generator.target))
                self._words.append(type(node).__name__)
                self._write_all(node.generators)
                self._write_all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
                self._scopes.pop()
            case ast.ClassDef():
                self._words.append("class")
                self._write_all([*node.bases, *node.decorator_list])
                self._enter(_inside(node.body))
                self._write_all(node.body)
                self._scopes.pop()
            case ast.Name():
                self._words.append(self._word(node.id))
            case ast.Constant():
                self._words.append(repr(node.value))
            case ast.AnnAssign():  # one without a value says nothing
                self.write(ast.Assign([node.target], node.value or ast.Constant(None)))
            case ast.Call():
                self._words.append("call")
                self._write_all([node.func, *node.args])
                self._write_keywords(node)
            case _:
                self._write_fields(node)

    def _write_fields(self, node: ast.AST) -> None:
        self._words.append(type(node).__name__)
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr_context):
                continue
            if isinstance(value, ast.AST):
                self.write(value)
            elif isinstance(value, list):
                self._words.append(str(len(value)) if field not in ("body", "orelse", "finalbody") else field)
                self._write_all(each for each in value if isinstance(each, ast.AST))
            elif isinstance(value, str) and field in ("name", "rest"):  # of an error or a pattern: a variable
                self._words.append(self._word(value))
            elif value is not None and field not in ("type_comment", "kind"):
                self._words.append(repr(value))

    def _write_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.write(node)
        self._words.append("end")

    def _write_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """Write a function. A lambda is written as a function that returns its expression."""
        taken = node.args
        self._words.append("async" if isinstance(node, ast.AsyncFunctionDef) else "function")
        self._write_all([*getattr(node, "decorator_list", ()), *taken.defaults, *filter(None, taken.kw_defaults)])
        body = [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body
        arguments = _arguments(taken)
        self._enter(_inside(body), [each.arg for each in arguments])
        self._size += len(arguments)
        self._words += [str(len(taken.posonlyargs + taken.args)), str(len(taken.kwonlyargs)), str(taken.vararg is None)]
        self._words += [self._word(each.arg) for each in arguments]
        self._write_all(body)
        self._scopes.pop()

    def _write_keywords(self, node: ast.Call) -> None:
        """Write the arguments of a call that have names, in one order. The names of a helper's arguments are not kept."""
        helper = self._names.defined.get(self._names.resolved(node.func.id)) if isinstance(node.func, ast.Name) else None
        own = [each.arg for each in _arguments(helper.args)] if isinstance(helper, FUNCTIONS) else []
        named = [(str(own.index(each.arg)) if each.arg in own else str(each.arg), each.value) for each in node.keywords]
        for name, value in sorted(named, key=lambda each: each[0]):
            self._words.append(f"{name}=")
            self.write(value)

    def _enter(self, nodes: Iterable[ast.AST], names: Iterable[str] = ()) -> None:
        """Begin a scope with names, and with the names that nodes bind."""
        self._scopes.append(dict.fromkeys([*names, *(name for node in nodes for name in _bound(node))], ""))

    def _word(self, name: str) -> str:
        """Return what stands for a name in the text."""
        for scope in reversed(self._scopes):
            if name in scope:
                scope[name] = scope[name] or f"local {next(self._numbers)}"
                return scope[name]
        if name in self._names.imported:
            return f"from {self._names.imported[name]}"
        if self._follow and (helper := self._names.resolved(name)) in self._names.defined:
            if helper not in self.followed:
                self.followed.append(helper)
            return f"helper {self.followed.index(helper)}"
        if self._follow or hasattr(builtins, name):
            return name
        return self._free.setdefault(name, f"free {len(self._free)}")


def _says_nothing(node: ast.AST) -> bool:
    """Return whether a statement has no effect: a docstring, ``...``, or an annotation without a value."""
    return (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) or (isinstance(node, ast.AnnAssign) and node.value is None)


def _arguments(taken: ast.arguments) -> list[ast.arg]:
    """Return all arguments of a function, in one order."""
    return [each for each in (*taken.posonlyargs, *taken.args, taken.vararg, *taken.kwonlyargs, taken.kwarg) if each]


def _inside(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes in the body of a function that bind names of this function: without the insides of other functions."""
    for node in body:
        yield node
        if not isinstance(node, (*FUNCTIONS, *COMPREHENSIONS, ast.ClassDef)):
            yield from _inside(ast.iter_child_nodes(node))


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif (
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name
    ):
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest
