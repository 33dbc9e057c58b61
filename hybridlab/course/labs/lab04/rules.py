"""Formulas that students hand in as text, such as "(r - s) % D". They are parsed and evaluated, but never run as a program."""

import ast
import operator
import re
from collections.abc import Callable, Mapping

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError

LONGEST_RULE = 200  # characters
_ALLOWED = re.compile(r"[A-Za-z0-9_+\-*/%() \t\n]*")
_RUN_TOGETHER = re.compile(r"\d[A-Za-z_]")
_OPERATIONS: Mapping[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


class Formula:
    """A formula for whole numbers, written with + - * // % and brackets: ``formula(r=3, s=1, D=4)`` is its value.

    Parameters
    ----------
    text : str
        The formula.
    names : set of str
        The names that it may use.
    what : str
        The name of the formula in errors.

    Raises
    ------
    HybridLabError
        The text has anything else, or a call of the formula divides by zero.

    Examples
    --------
    >>> Formula("(r - s) % D", {"r", "s", "D"}, "the rule")(r=0, s=1, D=4)
    3
    >>> Formula("(r - s) % N", {"r", "s", "D"}, "the rule")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: the rule has a name 'N': it knows D, r, s
    """

    def __init__(self, text: str, names: set[str], what: str) -> None:
        self._what = what
        self._names = names
        if len(text) > LONGEST_RULE:
            raise HybridLabError(f"{what} has {len(text)} characters: at most {LONGEST_RULE} are read", "too-long")
        joined = _RUN_TOGETHER.search(text)
        if not _ALLOWED.fullmatch(text) or joined:
            sign = f"write {joined[0][0]} * {joined[0][1]}" if joined else "write it with + - * // % and brackets"
            raise HybridLabError(f"{what} cannot be read: {sign}, such as (r + 2 * s) % D, not {short_repr(text)}", "not-a-formula")
        try:
            tree = ast.parse(" ".join(text.split()), mode="eval").body
        except (SyntaxError, RecursionError, MemoryError):
            raise HybridLabError(
                f"{what} is not a complete formula: {short_repr(text)}; write one such as (r + 2 * s) % D", "incomplete-formula"
            ) from None
        self._check(tree)
        self._value = self._compiled(tree)

    def __call__(self, **values: int) -> int:
        """Return the value of the formula for these values of its names."""
        try:
            return self._value(values)
        except ZeroDivisionError:
            setting = ", ".join(f"{name} = {value}" for name, value in values.items())
            raise HybridLabError(f"{self._what} divides by zero for {setting}", "division-by-zero") from None

    def _check(self, node: ast.AST) -> None:
        match node:
            case ast.BinOp(left, sign, right) if type(sign) in _OPERATIONS:
                self._check(left)
                self._check(right)
            case ast.UnaryOp(ast.USub() | ast.UAdd(), inner):
                self._check(inner)
            case ast.Constant(int(value)) if not isinstance(value, bool):
                pass
            case ast.Name(name):
                if name not in self._names:
                    raise HybridLabError(f"{self._what} has a name {name!r}: it knows {', '.join(sorted(self._names))}", "unknown-name")
            case ast.BinOp(_, ast.Div(), _):
                raise HybridLabError(f"{self._what} divides with /, which leaves fractions: take // or %", "true-division")
            case _:
                raise HybridLabError(f"{self._what} may have names, whole numbers, + - * // % and brackets, nothing else", "not-arithmetic")

    def _compiled(self, node: ast.AST) -> Callable[[Mapping[str, int]], int]:
        """Return the function that computes the value of a node from the values of the names."""
        match node:
            case ast.BinOp(left, sign, right):
                operation, first, second = _OPERATIONS[type(sign)], self._compiled(left), self._compiled(right)
                return lambda values: operation(first(values), second(values))
            case ast.UnaryOp(sign, inner):
                positive = self._compiled(inner)
                return (lambda values: -positive(values)) if isinstance(sign, ast.USub) else positive
            case ast.Constant(int(value)):
                return lambda values: value
            case ast.Name(name):
                return lambda values: values[name]
        raise HybridLabError(f"{self._what} cannot be evaluated", "not-arithmetic")  # _check has let nothing else through
