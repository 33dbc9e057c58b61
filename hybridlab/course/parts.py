"""Use a student's functions in later labs. When a function passes its check, ``save`` writes the function to a file. ``part`` loads it.

A file can hold a function of the notebook (written with ``def`` or ``lambda``), or an object of a class of the notebook that can be called,
with everything that they use. It cannot hold a value that Python code cannot write, such as an array or a random generator.
"""

import ast
import builtins
import importlib.util
import inspect
import os
import symtable
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from hybridlab.checks import checked_text, short_repr
from hybridlab.errors import HybridLabError

FOLDER = "my_parts"  # the folder of saved functions, beside the notebooks
ELSEWHERE = "HYBRIDLAB_PARTS"  # the environment variable that can name another folder


@dataclass(frozen=True, repr=False)
class Part:
    """A function that a lab uses: the student's own function, or the library's function if the student has not written one yet.

    Parameters
    ----------
    name : str
        The name of the function.
    function : callable or None
        The function that runs when this object is called. None if there is neither a student's nor a library's function.
    source : Path or None
        The file with the student's function; None if the function is the library's.
    """

    name: str
    function: Callable[..., Any] | None
    source: Path | None

    @property
    def own(self) -> bool:
        """True if the function is the student's own, False if it is the library's."""
        return self.source is not None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function and return its result."""
        if self.function is None:
            raise HybridLabError(
                f"{self.name} has no function yet: write it so that its check passes, or give part() a function as `otherwise`",
                "no-function",
            )
        return self.function(*arguments, **named)

    def __repr__(self) -> str:
        if self.source is None:
            return f"{self.name}: the library's, because you have not built yours yet"
        undone = "; here it does the task of the lab, because your own change is undone" if hasattr(self.function, "undone") else ""
        return f"{self.name}: your own, from {self.source.as_posix()}{undone}"


def part(name: str, otherwise: Callable[..., Any] | None) -> Part:
    """Return the student's own function from an earlier lab, or ``otherwise`` if no such function has been saved yet.

    Parameters
    ----------
    name : str
        The name of the function, such as ``"ring_all_reduce"``.
    otherwise : callable or None
        The function to use until the student has written one. With None, a call of the result raises an error until then.

    Raises
    ------
    HybridLabError
        (1) ``name`` cannot be the name of a function. (2) ``otherwise`` is neither a function nor None. (3) The student's file raises an
        error when it runs; the message names the file and the line. (4) The student's file does not define the function.

    Examples
    --------
    >>> part("ring_all_reduce", otherwise=max)
    ring_all_reduce: the library's, because you have not built yours yet
    """
    if not checked_text(name, "name").isidentifier():
        raise HybridLabError(f"name must be the name of a function, such as 'ring_all_reduce', not {short_repr(name)}", "unknown-name")
    if otherwise is not None and not callable(otherwise):
        raise HybridLabError(f"otherwise must be a function, not {short_repr(otherwise)}", "wrong-type")
    path = folder() / f"{name}.py"
    if not path.is_file():
        return Part(name, otherwise, None)
    return Part(name, _load(name, path), path)


def folder() -> Path:
    """Return the folder of saved functions: ``my_parts`` beside the notebook, or the folder that HYBRIDLAB_PARTS names."""
    return Path(os.environ.get(ELSEWHERE) or FOLDER)


def save(name: str, function: Callable[..., Any], then: str = "") -> str:
    """Save a function to a file, with all functions, classes, imports and values of the notebook that the function uses.

    Return a sentence that names the file, or that says why the function has not been saved. A failure raises no error.

    Parameters
    ----------
    name : str
        The name that the task gives to the function. The function in the notebook can have another name, or none.
    function : callable
        The function of the student, or an object that can be called.
    then : str
        Python code for the end of the file. It can replace the function by a changed function with the same name.
    """
    path = folder() / f"{name}.py"
    function = function.function if isinstance(function, Part) and function.function else function
    try:
        title = f'"""{name}, saved when its check passed. `part` finds it here."""'
        text = f"{title}\n\n{source_of(function, name)}" + (f"\n\n{then}\n" if then else "")
        # The file must run without the notebook. If it does not, the student learns it now, and not in a later lab.
        exec(compile(text, path.name, "exec"), {"__name__": name})  # noqa: S102 - the student's own code
        path.parent.mkdir(exist_ok=True)
        # The text is first written to another file, which then replaces the old file in one operation. So an interrupt during the
        # writing cannot leave a file with half a function.
        unfinished = path.with_suffix(".tmp")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    except Exception as why:  # the check has passed, so a problem with the file is reported in the sentence and raises no error
        return f"not saved for later labs: {why}"
    return f"saved as {path.as_posix()}, where `part` finds it"


def source_of(function: Callable[..., Any], name: str) -> str:
    """Return the text of a module that defines ``name`` as a function, with everything in its notebook that the function uses.

    Raises
    ------
    HybridLabError
        The function uses a value that cannot be written as Python code, or the source of the function is not known.
    """
    imports: dict[str, str] = {}
    pieces: dict[str, str] = {}
    _add(name, function, {"__name__": function.__module__}, imports, pieces)
    return "\n\n".join(["\n".join(sorted(imports.values())), *pieces.values()]).lstrip() + "\n"


def _collect(name: str, function: Any, imports: dict[str, str], pieces: dict[str, str]) -> None:
    """Add code that defines a function or class as ``name``, and everything that it uses, to ``pieces``, and its imports to ``imports``."""
    # A variable of an outer function exists only while that function runs, so the file cannot define it.
    if getattr(function, "__closure__", None):
        raise HybridLabError(
            f"it uses {', '.join(function.__code__.co_freevars)} of the function around it; make it an argument", "not-saved"
        )
    own, source = _source_of(name, function)
    pieces[own] = ""  # a function may call itself
    # A function has a dict of its global names. A class has no such dict, so the dict of a method, or else of the module, is used.
    inner = [inspect.unwrap(function), *vars(function).values()]
    there = next((each.__globals__ for each in inner if inspect.isfunction(each)), None) or vars(sys.modules[function.__module__])
    for used in _globals_in(source):
        if used != own and used in there and used not in imports and used not in pieces:
            _add(used, there[used], there, imports, pieces)
    del pieces[own]
    pieces[own] = source  # a dict keeps the order of insertion, so the function stands after everything that it uses
    if own != name:
        if name in pieces or name in imports:
            raise HybridLabError(f"it uses another function {name}; give this name to the function that you hand in", "not-saved")
        pieces[name] = f"{name} = {own}\n"


def _source_of(name: str, value: Any) -> tuple[str, str]:
    """Return the name that the code of a function or class of the notebook defines, and this code. A lambda gets the name ``name``."""
    inner = inspect.unwrap(value)
    # Before Python 3.13, inspect finds the methods of a notebook's class, but not the class itself.
    functions = [inner] if inspect.isfunction(inner) else [each for each in vars(value).values() if inspect.isfunction(each)]
    for function in functions:
        with suppress(OSError, SyntaxError):
            lines, _ = inspect.findsource(function)
            found = [node for node in ast.walk(ast.parse("".join(lines))) if _defines(node, value, function.__code__.co_firstlineno)]
            if found and isinstance(found[0], ast.Lambda):
                return name, f"{name} = ({_source_of_lambda(found, function, ''.join(lines))})\n"
            if found:
                return value.__name__, textwrap.dedent("".join(lines[_first_line(found[0]) - 1 : getattr(found[0], "end_lineno", None)]))
    try:
        return value.__name__, textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        raise HybridLabError(f"the source of {name} is not known", "no-source") from None


def _defines(node: Any, value: Any, line: int) -> bool:
    """Return whether a node defines a value. ``line`` is the line in which the function begins, or a method of the class."""
    if isinstance(value, type):
        return isinstance(node, ast.ClassDef) and node.name == value.__name__ and node.lineno <= line <= (node.end_lineno or 0)
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and _first_line(node) == line


def _first_line(node: Any) -> int:
    """Return the line of a definition's first decorator, or of the definition itself if it has none."""
    lines: list[int] = [node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]
    return min(lines)


def _source_of_lambda(nodes: Iterable[ast.AST], function: Any, text: str) -> str:
    """Return the source of a lambda. If one line has several lambdas, their bytecode tells which of them it is."""
    written = [ast.get_source_segment(text, node) or "" for node in nodes if isinstance(node, ast.Lambda)]
    codes = {source: eval(f"({source})", {}).__code__ for source in written}  # noqa: S307 - this makes the lambda, and does not call it
    own = function.__code__
    alike = [source for source, code in codes.items() if (code.co_code, code.co_consts) == (own.co_code, own.co_consts)]
    return next(iter(alike or written))


def _add(name: str, value: Any, there: dict[str, Any], imports: dict[str, str], pieces: dict[str, str]) -> None:
    """Add the code that gives ``name`` this ``value``: an import, the source of a function or class, or the value itself."""
    if isinstance(value, ModuleType):
        imports[name] = f"import {value.__name__}" if value.__name__ == name else f"import {value.__name__} as {name}"
    # Public names are imported from hybridlab itself, because a later version can move them to another module.
    elif getattr(sys.modules["hybridlab"], known := getattr(value, "__name__", ""), None) is value:
        imports[name] = _import("hybridlab", known, name)
    # If the function uses another saved function, the file loads that one with part(). So it gets the version that was saved last.
    elif isinstance(value, Part):
        imports["Part"] = "from hybridlab import part"
        otherwise = "" if value.own else getattr(value.function, "__name__", "")
        if otherwise.isidentifier():  # the name of a lambda, "<lambda>", is not an identifier
            _add(otherwise, value.function, there, imports, pieces)
        pieces[name] = f"{name} = part({value.name!r}, otherwise={otherwise if otherwise.isidentifier() else None})\n"
    # Only functions and classes of the notebook need their source in the file. All others can be imported.
    elif getattr(value, "__module__", None) == there.get("__name__") and (inspect.isclass(value) or _is_function(value)):
        _collect(name, value, imports, pieces)
    elif hasattr(value, "__module__") and hasattr(value, "__qualname__"):
        imports[name] = _import(value.__module__, value.__qualname__, name)
    else:
        kind = type(value)
        if kind.__module__ == there.get("__name__") and not _is_code(repr(value), value):
            _add(kind.__name__, kind, there, imports, pieces)
            state = _as_code(name, vars(value))
            pieces[name] = f"{name} = object.__new__({kind.__name__})\nvars({name}).update({state})\n"
        else:
            pieces[name] = f"{name} = {_as_code(name, value)}\n"


def _is_function(value: Any) -> bool:
    return inspect.isfunction(inspect.unwrap(value))  # such as a function with a decorator of functools


def _as_code(name: str, value: Any) -> str:
    """Return Python code for a value with a name. Raise an error if there is no such code."""
    if not _is_code(written := repr(value), value):
        raise HybridLabError(f"it uses {name} of the notebook, which cannot be written as code; make it an argument", "not-saved")
    return written


def _is_code(written: str, value: Any) -> bool:
    """Return whether a text is Python code for a value. The repr of an array or of a random generator is no such code."""
    try:
        return bool(eval(written, {}) == value)  # noqa: S307 - the repr of a value of the student's own notebook
    except Exception:
        return False


def _import(module: str, name: str, alias: str) -> str:
    return f"from {module} import {name}" + ("" if name == alias else f" as {alias}")


def _globals_in(source: str) -> list[str]:
    """Return the global names that a source uses but does not define itself, in alphabetical order."""

    def walk(table: symtable.SymbolTable) -> Iterator[str]:
        for symbol in table.get_symbols():
            if symbol.is_global() or (table.get_type() == "module" and symbol.is_referenced() and not symbol.is_assigned()):
                yield symbol.get_name()
        for child in table.get_children():
            yield from walk(child)

    # built-in names such as len need no import
    return sorted({name for name in walk(symtable.symtable(source, "<part>", "exec")) if not hasattr(builtins, name)})


def _load(name: str, path: Path) -> Callable[..., Any]:
    """Run a saved file and return the function with this name. If the file fails, raise an error that names the failing line."""
    spec = importlib.util.spec_from_file_location(f"my_parts.{name}", path)
    if spec is None or spec.loader is None:
        raise HybridLabError(f"{path} is not a Python file", "unreadable-part")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        # The traceback also has lines of libraries that the file calls. The student needs the line of this file.
        lines = [place.lineno for place in traceback.extract_tb(error.__traceback__) if place.filename == str(path)]
        where = f"line {lines[-1]} of {path}" if lines else str(path)
        raise HybridLabError(f"{where} raises {type(error).__name__}: {error}; correct the file, or delete it", "unreadable-part") from None
    if not callable(function := getattr(module, name, None)):
        raise HybridLabError(f"{path} does not define the function {name}: run the check again, or delete the file", "unreadable-part")
    return function  # type: ignore[no-any-return]
