"""Expressions as data. Python evaluates them, and so does the script of a web page. They are never run as a program.

A rule such as ``"value < truth"`` recognises a mistake. A sentence has expressions in braces, with a format behind a colon:
``"{value} microbatches take {value * forward:.1f} ms"``. A formula such as ``"(r - s) % D"`` is the answer of a student. The grammar is a
small part of Python's.
"""

import ast
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab.checks import counted, known_name, short_repr
from hybridlab.course.checking.answers import Numbers, near, require_text
from hybridlab.errors import HybridLabError

# A known mistake: the wrong value that it gives, or a rule that recognises it; its code; the sentence about it.
Mistake = tuple[Numbers | str, str, str]
# A number, a text, or a tuple: the name of an operation and its operands, which are nodes, too.
Node = float | str | tuple[Any, ...]
Names = Mapping[str, Any]

# a field of a sentence, as in "{value / 2:.1f}": the expression, and the format behind a colon
FIELD = re.compile(r"\{([^{}:]+)(?::([^{}:]*))?\}")
FORMAT = re.compile(r"(\.\d+)?g|,?\.\d+f")  # the formats that the script of a page knows, too
PLAIN = ".10g"  # the format of a field without one
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.USub: "unary -",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.In: "in", ast.NotIn: "not in",
    ast.And: "and", ast.Or: "or",
}  # fmt: skip
OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": operator.add,  # of two lists: one after the other
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "in": lambda item, items: item in items,
    "not in": lambda item, items: item not in items,
    "unary -": operator.neg,
    # an answer is a float, and so is a place computed from it
    "at": lambda items, place: items[int(place)],
    "list": lambda *items: list(items),
    "abs": abs,
    "min": min,
    "max": max,
    "sum": sum,
    "len": len,
    "near": near,
    "count": lambda items, item: items.count(item),
    "index": lambda items, item: items.index(item),
    "distinct": lambda items: list(dict.fromkeys(items)),
    "without": lambda items, others: [item for item in items if item not in others],
    "counted": lambda count, thing: counted(int(count), thing),
}
LAZY = ("name", "and", "or", "if")  # operations that do not evaluate all their operands
ARITHMETIC = ("+", "-", "*", "//", "%", "unary -")  # operations of a formula, which computes with whole numbers
LONGEST_FORMULA = 200  # characters
# names, numbers, operators and brackets
FORMULA_SIGNS = re.compile(r"[A-Za-z0-9_+\-*/%() \t\n]*")
RUN_TOGETHER = re.compile(r"\d[A-Za-z_]")  # "2r" for 2 * r


@dataclass(frozen=True)
class Table:
    """A function of whole numbers that an expression can call. A page gets a table of its values.

    Parameters
    ----------
    function : callable
        Takes a list of arguments, each a tuple of whole numbers, and returns a number for each of them.
    arguments : sequence of tuples of int
        All arguments with which an expression calls the function.

    Examples
    --------
    >>> table = Table(lambda rows: [device / chunks for device, chunks in rows], [(0, 2), (0, 4), (1, 2), (1, 4)])
    >>> filled("{share(value, 4)}", {"value": 1.0, "share": table})
    '0.25'
    >>> table.values()
    [{'2': 0.0, '4': 0.0}, {'2': 0.5, '4': 0.25}]
    """

    function: Callable[[Sequence[tuple[int, ...]]], Iterable[float]]
    arguments: Sequence[tuple[int, ...]]

    def __call__(self, *arguments: float) -> float:
        """Return the value for some arguments, which an expression has as floats."""
        (value,) = self.function([tuple(map(int, arguments))])
        return float(value)

    def values(self) -> Any:
        """Return all values, with one level for each argument: a list if the arguments count up from 0, else a dict."""
        return _levels(dict(zip(self.arguments, map(float, self.function(self.arguments)), strict=True)))


def _levels(values: Mapping[tuple[int, ...], float]) -> Any:
    """Return values by tuples of arguments as nested lists or dicts: a level for each argument."""
    if () in values:  # no argument is left
        return values[()]
    levels: dict[int, dict[tuple[int, ...], float]] = {}
    for (first, *rest), value in values.items():
        levels.setdefault(first, {})[tuple(rest)] = value
    inner = [_levels(level) for level in levels.values()]
    return inner if [*levels] == [*range(len(levels))] else dict(zip(map(str, levels), inner, strict=True))


@cache
def parsed(text: str) -> Node:
    """Return an expression as nodes.

    Raises
    ------
    HybridLabError
        The text is no expression, or has a part that pages do not know.

    Examples
    --------
    >>> parsed("value[0] + 1 > most")
    ('>', ('+', ('at', ('name', 'value'), 0), 1), ('name', 'most'))
    >>> parsed("value.real")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: the expression 'value.real' has 'value.real', which pages cannot evaluate
    """
    try:
        return _node(ast.parse(text.strip(), mode="eval").body, text)
    except (SyntaxError, RecursionError, MemoryError):  # the last two: too many brackets in each other
        raise HybridLabError(f"{text!r} is no expression: write one such as 'value < 3'", "no-expression") from None


def _node(tree: ast.AST, text: str) -> Node:
    """Return the node for a part of an expression; ``text`` is the whole expression, for errors."""

    def of(*parts: ast.AST) -> tuple[Node, ...]:
        return tuple(_node(part, text) for part in parts)

    match tree:
        case ast.Constant(bool() | int() | float() | str() as value):
            return value
        case ast.Name(name):
            return "name", name
        case ast.BinOp(left, sign, right) | ast.Compare(left, [sign], [right]) if type(sign) in OPERATORS:
            return OPERATORS[type(sign)], *of(left, right)
        case ast.UnaryOp(ast.USub() as sign, operand):
            return OPERATORS[type(sign)], *of(operand)
        case ast.UnaryOp(ast.UAdd(), operand):
            return _node(operand, text)
        case ast.BoolOp(sign, operands):
            return OPERATORS[type(sign)], *of(*operands)
        case ast.IfExp(condition, then, otherwise):
            return "if", *of(condition, then, otherwise)
        # an index, but no slice and no place in several dimensions
        case ast.Subscript(items, place) if not isinstance(place, (ast.Slice, ast.Tuple)):
            return "at", *of(items, place)
        case ast.List(items):
            return "list", *of(*items)
        case ast.Call(ast.Name(name), operands, []) if name not in LAZY:
            return name, *of(*operands)
    raise HybridLabError(f"the expression {text!r} has {ast.unparse(tree)!r}, which pages cannot evaluate", "unknown-operation")


def evaluated(node: Node, names: Names) -> Any:
    """Return the value of an expression; ``names`` are the values of its names.

    >>> evaluated(parsed("near(value, truth, 0.5) and value != truth"), {"value": 2.5, "truth": 3})
    True
    """
    if not isinstance(node, tuple):
        return node
    operation, *operands = node
    if operation == "name":
        return names[operands[0]]
    if operation == "if":
        return evaluated(operands[1 if evaluated(operands[0], names) else 2], names)
    if operation in ("and", "or"):  # their value is a bool here and in the script; in Python it would be an operand
        stop = operation == "or"
        return next((stop for operand in operands if bool(evaluated(operand, names)) is stop), not stop)
    values = [evaluated(operand, names) for operand in operands]
    return (OPERATIONS.get(operation) or names[operation])(*values)


@cache
def sentence_parts(sentence: str) -> tuple[str | tuple[Node, str], ...]:
    """Return the parts of a sentence: texts, and pairs of an expression and its format.

    Raises
    ------
    HybridLabError
        A brace is alone, or a field has another format than those of numbers.

    Examples
    --------
    >>> sentence_parts("it takes {value:.1f} ms")
    ('it takes ', (('name', 'value'), '.1f'), ' ms')
    """
    texts = FIELD.split(sentence)  # text, expression, format, text, ...: the groups of FIELD stand between the texts
    for text, form in zip(texts[::3], [*texts[2::3], None], strict=True):
        if "{" in text or "}" in text or not (form is None or FORMAT.fullmatch(form)):
            raise HybridLabError(f"a field in a sentence is such as {{value}} or {{value:.2f}}: {short_repr(sentence)}", "no-field")
    parts: list[str | tuple[Node, str]] = []
    for text, expression, form in zip(texts[::3], [*texts[1::3], ""], [*texts[2::3], None], strict=True):
        parts += [text] if text else []
        parts += [(parsed(expression), form or PLAIN)] if expression else []
    return tuple(parts)


def filled(sentence: str, names: Names) -> str:
    """Return a sentence with its fields filled in: numbers by their format, lists number by number, texts as they are.

    >>> filled("not {value} ms, {value / 2:.1f} ms", {"value": 81.0}), filled("not {value}", {"value": [1.5, 2.0]})
    ('not 81 ms, 40.5 ms', 'not 1.5, 2')
    """
    return "".join(part if isinstance(part, str) else _field_text(evaluated(part[0], names), part[1]) for part in sentence_parts(sentence))


def _field_text(value: Any, form: str) -> str:
    """Return the text of a field for a value: a number or a list of them in its format, a text as it is."""
    if isinstance(value, str):
        return value
    return ", ".join(format(each, form) for each in np.ravel(value).tolist())


def require_names(node: Node, known: Iterable[str]) -> None:
    """Refuse an expression with a name that is not one of ``known``, or with an operation that does not exist.

    >>> require_names(parsed("valu < 3"), ["value", "truth"])
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: unknown name in an expression 'valu': did you mean 'value'? Known: value, truth
    """
    if not isinstance(node, tuple):
        return
    operation, *operands = node
    if operation == "name":
        known_name(operands[0], known, "name in an expression")
        return
    if operation not in LAZY:
        known_name(operation, [*OPERATIONS, *known], "function in an expression")
    for operand in operands:
        require_names(operand, known)


def require_sentence(sentence: Any, known: Sequence[str]) -> None:
    """Refuse a sentence that is no text, or whose fields have a name that is not one of ``known``."""
    for part in sentence_parts(require_text(sentence, "a sentence about an answer", "not {value} ms")):
        if not isinstance(part, str):
            require_names(part[0], known)


def require_mistakes(mistakes: Iterable[Mistake], known: Sequence[str]) -> None:
    """Refuse known mistakes with a function in place of a rule, and rules and sentences with a name that is not one of ``known``."""
    for wrong_value, _, sentence in mistakes:
        if isinstance(wrong_value, str) or callable(wrong_value):
            require_names(parsed(require_text(wrong_value, "a rule about an answer", "value < truth")), known)
        require_sentence(sentence, known)


def mistake_behind(
    value: Numbers,
    mistakes: Sequence[Mistake],
    meets: Callable[[Numbers, Numbers], bool] = near,
    names: Names = MappingProxyType({}),
) -> tuple[str, str] | None:
    """Return the code and the sentence of the known mistake that explains ``value``, or None.

    Parameters
    ----------
    value : float or sequence of floats
        The answer.
    mistakes : sequence of Mistake
        Of several wrong values that the answer meets, the nearest counts. A wrong value comes before a rule that recognises a mistake.
    meets : callable
        Whether the answer is a given wrong value: ``meets(value, wrong_value)``. By default the two must be equal.
    names : mapping
        What the names in rules and sentences stand for, beside ``value``.

    Examples
    --------
    >>> mistake_behind(50, [(50, "fill-alone", "{value} ms is the fill"), ("value > 80", "too-much", "the drain ends before")])
    ('fill-alone', '50 ms is the fill')
    """
    known = {**names, "value": value}
    # two mistakes can have almost the same value, and an answer within the rounding of both
    hits = [(mistake[0], mistake) for mistake in mistakes if not isinstance(mistake[0], str) and meets(value, mistake[0])]
    nearest = min(hits, key=lambda hit: float(np.max(np.abs(np.subtract(value, hit[0])))), default=None)
    recognised = (mistake for mistake in mistakes if isinstance(mistake[0], str) and evaluated(parsed(mistake[0]), known))
    found = nearest[1] if nearest else next(recognised, None)
    return (found[1], filled(found[2], known)) if found else None


def formula_of(text: str, names: Collection[str], what: str) -> Callable[..., int]:
    """Return a function that computes a formula of whole numbers with + - * // % and brackets: ``function(r=3, s=1, D=4)``.

    Parameters
    ----------
    text : str
        The formula.
    names : collection of str
        The names that it may use.
    what : str
        The name of the formula in errors.

    Raises
    ------
    HybridLabError
        The text has anything else, or a call of the function divides by zero.

    Examples
    --------
    >>> formula_of("(r - s) % D", ("r", "s", "D"), "the rule")(r=0, s=1, D=4)
    3
    >>> formula_of("(r - s) % N", ("r", "s", "D"), "the rule")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: the rule has a name 'N': it knows D, r, s
    """
    if len(text) > LONGEST_FORMULA:
        raise HybridLabError(f"{what} has {len(text)} characters: at most {LONGEST_FORMULA} are read", "too-long")
    joined = RUN_TOGETHER.search(text)
    if joined or not FORMULA_SIGNS.fullmatch(text):
        advice = f"write {joined[0][0]} * {joined[0][1]}" if joined else "write it with + - * // % and brackets"
        raise HybridLabError(f"{what} cannot be read: {advice}, such as (r + 2 * s) % D, not {short_repr(text)}", "not-a-formula")
    try:
        node = parsed(" ".join(text.split()))  # on one line: a line end would end the expression
    except HybridLabError as why:
        if why.code == "no-expression":
            message = f"{what} is not a complete formula: {short_repr(text)}; write one such as (r + 2 * s) % D"
            raise HybridLabError(message, "incomplete-formula") from None
        raise _not_arithmetic(what) from None
    _require_arithmetic(node, names, what)

    def value(**values: int) -> int:
        try:
            return int(evaluated(node, values))
        except ZeroDivisionError:
            setting = ", ".join(f"{name} = {each}" for name, each in values.items())
            raise HybridLabError(f"{what} divides by zero for {setting}", "division-by-zero") from None

    return value


def _require_arithmetic(node: Node, names: Collection[str], what: str) -> None:
    """Refuse a formula with anything but known names, whole numbers and arithmetic."""
    match node:
        case ("name", name):
            if name not in names:
                raise HybridLabError(f"{what} has a name {name!r}: it knows {', '.join(sorted(names))}", "unknown-name")
        case ("/", *_):
            raise HybridLabError(f"{what} divides with /, which leaves fractions: take // or %", "true-division")
        case (operation, *operands) if operation in ARITHMETIC:
            for operand in operands:
                _require_arithmetic(operand, names, what)
        case _:
            if type(node) is not int:  # isinstance would accept True
                raise _not_arithmetic(what)


def _not_arithmetic(what: str) -> HybridLabError:
    return HybridLabError(f"{what} may have names, whole numbers, + - * // % and brackets, nothing else", "not-arithmetic")
