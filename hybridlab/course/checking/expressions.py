"""Expressions as data: this module parses and evaluates them, and never runs them as Python code.

The script on the site's pages evaluates the same expressions. There are three kinds. (1) A rule such as ``"value < truth"`` recognises a
mistake. (2) A sentence has expressions in braces, each with an optional format after a colon: ``"this is {value / 2:.1f} ms"``. (3) A
formula such as ``"(r - s) % D"`` is the answer of a student. Their grammar is a small part of the grammar of Python.
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

from hybridlab.checks import counted, each_of, known_name, short_repr
from hybridlab.course.checking.answers import Numbers, near, require_text
from hybridlab.errors import HybridLabError

# A known mistake, as (value or rule, code, sentence). The first item is the wrong value, or a rule that is true for a wrong answer.
Mistake = tuple[Numbers | str, str, str]
# A parsed expression: a number, a text, or a tuple with the name of an operation and its operands. Each operand is a node, too.
Node = float | str | tuple[Any, ...]
Names = Mapping[str, Any]

# A field of a sentence, such as "{value / 2:.1f}". Its two groups are the expression and the format after the colon.
FIELD = re.compile(r"\{([^{}:]+)(?::([^{}:]*))?\}")
FORMAT = re.compile(r"(\.\d+)?g|,?\.\d+f")  # the formats that both Python and the script on the site know
PLAIN = ".10g"  # the format of a field that gives no format
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.USub: "unary -",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.In: "in", ast.NotIn: "not in",
    ast.And: "and", ast.Or: "or",
}  # fmt: skip
OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": operator.add,  # of two lists: their concatenation
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
    # numbers of an answer are floats, so an index that is computed from an answer is a float, too
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
ARITHMETIC = ("+", "-", "*", "//", "%", "unary -")  # the operations that a student's formula of whole numbers may use
LONGEST_FORMULA = 200  # the most characters in a formula
# the characters of a formula: those of names, numbers, operators and brackets
FORMULA_SIGNS = re.compile(r"[A-Za-z0-9_+\-*/%() \t\n]*")
RUN_TOGETHER = re.compile(r"\d[A-Za-z_]")  # finds "2r", which a student may write for 2 * r


@dataclass(frozen=True)
class Table:
    """A function of whole numbers that an expression can call. The script on the site gets a table of the function's values.

    Parameters
    ----------
    function : callable
        Takes a list of tuples, each with the arguments of one call, and returns one number for each tuple.
    arguments : sequence of tuples of int
        The arguments of all calls that an expression can make.

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
        """Return the value for the arguments of one call. Expressions compute with floats, so the arguments are converted to ints."""
        (value,) = self.function([tuple(map(int, arguments))])
        return float(value)

    def values(self) -> Any:
        """Return the values of all calls as nested lists or dicts, with one level for each argument.

        A level is a list if this argument has the values 0, 1, 2, ... without a gap. Else it is a dict with the argument as a text key.
        """
        return _levels(dict(zip(self.arguments, map(float, self.function(self.arguments)), strict=True)))


def _levels(values: Mapping[tuple[int, ...], float]) -> Any:
    """Return a dict from tuples of arguments to values as nested lists or dicts, with one level for each argument."""
    if () in values:  # the last level has been built
        return values[()]
    levels: dict[int, dict[tuple[int, ...], float]] = {}
    for (first, *rest), value in values.items():
        levels.setdefault(first, {})[tuple(rest)] = value
    inner = [_levels(level) for level in levels.values()]
    return inner if [*levels] == [*range(len(levels))] else dict(zip(map(str, levels), inner, strict=True))


@cache
def parsed(text: str) -> Node:
    """Return a text as a parsed expression.

    Raises
    ------
    HybridLabError
        The text is not an expression, or it uses something that the script on the site cannot evaluate.

    Examples
    --------
    >>> parsed("value[0] + 1 > most")
    ('>', ('+', ('at', ('name', 'value'), 0), 1), ('name', 'most'))
    >>> parsed("value.real")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: the expression 'value.real' has 'value.real', which the script on the site cannot evaluate
    """
    try:
        return _node(ast.parse(text.strip(), mode="eval").body, text)
    except (SyntaxError, RecursionError, MemoryError):  # the last two errors come from too many nested brackets
        raise HybridLabError(f"{text!r} is not an expression: write one such as 'value < 3'", "no-expression") from None


def _node(tree: ast.AST, text: str) -> Node:
    """Return the node for one part of an expression. The argument ``text`` is the whole expression, which errors show."""

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
        # an index such as items[0]; neither a slice, items[0:2], nor an index in two dimensions, items[0, 1]
        case ast.Subscript(items, place) if not isinstance(place, (ast.Slice, ast.Tuple)):
            return "at", *of(items, place)
        case ast.List(items):
            return "list", *of(*items)
        case ast.Call(ast.Name(name), operands, []) if name not in LAZY:
            return name, *of(*operands)
    raise HybridLabError(
        f"the expression {text!r} has {ast.unparse(tree)!r}, which the script on the site cannot evaluate", "unknown-operation"
    )


def evaluated(node: Node, names: Names) -> Any:
    """Return the value of an expression. The mapping ``names`` has the value of each name in the expression.

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
    if operation in ("and", "or"):  # their value is True or False, as in the script on the site; Python itself would return an operand
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
        A brace has no closing or opening partner, or the format of a field is not a known format of numbers.

    Examples
    --------
    >>> sentence_parts("it takes {value:.1f} ms")
    ('it takes ', (('name', 'value'), '.1f'), ' ms')
    """
    texts = FIELD.split(sentence)  # its items are: text, expression, format, text, expression, format, ..., text
    for text, form in zip(texts[::3], [*texts[2::3], None], strict=True):
        if "{" in text or "}" in text or not (form is None or FORMAT.fullmatch(form)):
            raise HybridLabError(
                f"a field in a sentence has a form such as {{value}} or {{value:.2f}}, not: {short_repr(sentence)}", "no-field"
            )
    parts: list[str | tuple[Node, str]] = []
    for text, expression, form in zip(texts[::3], [*texts[1::3], ""], [*texts[2::3], None], strict=True):
        parts += [text] if text else []
        parts += [(parsed(expression), form or PLAIN)] if expression else []
    return tuple(parts)


def filled(sentence: str, names: Names) -> str:
    """Return a sentence with the values of its fields. A number has the field's format, and so has each number of a list.

    >>> filled("not {value} ms, {value / 2:.1f} ms", {"value": 81.0}), filled("not {value}", {"value": [1.5, 2.0]})
    ('not 81 ms, 40.5 ms', 'not 1.5, 2')
    """
    return "".join(part if isinstance(part, str) else _field_text(evaluated(part[0], names), part[1]) for part in sentence_parts(sentence))


def _field_text(value: Any, form: str) -> str:
    """Return the text of a field. A number is written in the format, a list as its numbers with commas; a text does not change."""
    if isinstance(value, str):
        return value
    return ", ".join(format(each, form) for each in np.ravel(value).tolist())


def require_names(node: Node, known: Iterable[str]) -> None:
    """Raise an error if an expression uses a name that is not in ``known``, or an operation that does not exist.

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
    """Raise an error if a sentence is not a text, or if one of its fields uses a name that is not in ``known``."""
    for part in sentence_parts(require_text(sentence, "a sentence about an answer", "not {value} ms")):
        if not isinstance(part, str):
            require_names(part[0], known)


def require_mistakes(mistakes: Iterable[Mistake], known: Sequence[str]) -> None:
    """Raise an error if a known mistake is no triple of value, code and sentence, or uses a name that is not in ``known``."""
    wanted = "known mistakes are a list of triples such as (3, 'too-small', 'not {value} ms')"
    for mistake in each_of(mistakes, wanted):
        if not isinstance(mistake, tuple) or len(mistake) != 3:
            raise HybridLabError(f"{wanted}, not {short_repr(mistake)}", "wrong-type")
        wrong_value, code, sentence = mistake
        require_text(code, "the code of a known mistake", "too-small")
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
        The known mistakes. If the answer meets several wrong values, the mistake with the nearest wrong value is returned. Wrong values
        are tried first, then the rules in their order.
    meets : callable
        ``meets(value, wrong_value)`` returns whether the answer counts as equal to a wrong value. By default the two must be equal.
    names : mapping
        The values of the names in rules and sentences. The name ``value`` is added: it stands for the answer.

    Examples
    --------
    >>> mistake_behind(50, [(50, "fill-alone", "{value} ms is the fill"), ("value > 80", "too-much", "the drain ends before")])
    ('fill-alone', '50 ms is the fill')
    """
    known = {**names, "value": value}
    # the wrong values of two mistakes can be so close that an answer equals both up to rounding
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
        The names that the formula may use.
    what : str
        The words for the formula in errors, such as "the rule".

    Raises
    ------
    HybridLabError
        The text contains anything other than such a formula. A call of the returned function raises this error, too, if it divides by zero.

    Examples
    --------
    >>> formula_of("(r - s) % D", ("r", "s", "D"), "the rule")(r=0, s=1, D=4)
    3
    >>> formula_of("(r - s) % N", ("r", "s", "D"), "the rule")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: the rule uses the name 'N': use only D, r, s
    """
    if len(text) > LONGEST_FORMULA:
        raise HybridLabError(f"{what} has {len(text)} characters, and may have at most {LONGEST_FORMULA}", "too-long")
    joined = RUN_TOGETHER.search(text)
    if joined or not FORMULA_SIGNS.fullmatch(text):
        advice = f"write {joined[0][0]} * {joined[0][1]}" if joined else "write it with + - * // % and brackets"
        raise HybridLabError(f"{what} cannot be read: {advice}, such as (r + 2 * s) % D, not {short_repr(text)}", "not-a-formula")
    try:
        node = parsed(" ".join(text.split()))  # a line break would end the expression, so line breaks become spaces
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
    """Raise an error if a formula has anything other than known names, whole numbers and arithmetic."""
    match node:
        case ("name", name):
            if name not in names:
                raise HybridLabError(f"{what} uses the name {name!r}: use only {', '.join(sorted(names))}", "unknown-name")
        case ("/", *_):
            raise HybridLabError(f"{what} divides with /, which can give fractions: use // or %", "true-division")
        case (operation, *operands) if operation in ARITHMETIC:
            for operand in operands:
                _require_arithmetic(operand, names, what)
        case _:
            if type(node) is not int:  # isinstance(True, int) is True, but a truth value is not allowed
                raise _not_arithmetic(what)


def _not_arithmetic(what: str) -> HybridLabError:
    return HybridLabError(f"{what} may contain only names, whole numbers, + - * // % and brackets", "not-arithmetic")
