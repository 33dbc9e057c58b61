"""The twists of lab 16's build: lines, inputs, ranks and actions are given or named in another way."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from hybridlab.course.checking.answers import plain_values

from hybridlab.course.checking.twists import Function, Twist
from hybridlab.course.checking.legacy import in_words_of_the_page, show_changes, together
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Action, read_action

def backwards(given: list[Any]) -> list[Any]:
    return given[::-1]


Standard = Callable[[Function], Function]
PARTS = {"run": 2, "send": 3, "receive": 3}  # how many an action has that is a tuple


def _of_orders(forth: Callable[[list[Any]], list[Any]], back: Callable[[list[Any]], list[Any]]) -> Standard:
    """Return a ``standard`` that renames the lines."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def communication(orders: list[str], needs: dict[str, str], rank: int) -> Any:
            other = forth(orders)
            before = other.copy()
            result = function(other, needs, rank)
            show_changes(orders, other, before, back)
            return result

        return communication

    return standard


def _of_needs(forth: Callable[[list[str], dict[str, str]], dict[str, str]]) -> Standard:
    """Return a ``standard`` that renames the inputs."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def communication(orders: list[str], needs: dict[str, str], rank: int) -> Any:
            other = forth(orders, needs)
            before = dict(other)
            result = function(orders, other, rank)
            if other != before:
                needs.clear()  # so that the judge sees the change
            return result

        return communication

    return standard


def _of_plan(reads: Callable[[Any], list[Any]], rename: Callable[[list[Any], dict[str, str]], Any]) -> Standard:
    """Return a ``standard`` that renames the list of actions."""

    def standard(function: Function) -> Function:
        @wraps(function)
        def communication(orders: list[str], needs: dict[str, str], rank: int) -> Any:
            given = dict(needs)
            return in_words_of_the_page(function(orders, needs, rank), reads, lambda plan: rename(plan, given))

        return communication

    return standard


def _actions(plan: Any) -> list[Action]:
    """Return the actions of a list of texts, or raise."""
    values = plain_values(plan)
    if type(values) is not list:
        raise HybridLabError("the function returns a list", "not-a-list")
    return [read_action(value) for value in values]


def _tuples(plan: Any) -> list[Any]:
    """Return the texts of a list in which actions are tuples; what is no such tuple becomes a tuple, which the judge refuses."""
    values = plain_values(plan)
    if type(values) is not list:
        raise HybridLabError("the function returns a list", "not-a-list")
    return [_text_of_tuple(value) if _is_tuple(value) else (value,) for value in values]


def _is_tuple(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], str) and len(value) == PARTS.get(value[0])


def _text_of_tuple(action: list[Any]) -> str:
    between = {"run": "", "send": " to ", "receive": " from "}[action[0]]
    return f"{action[0]} {action[1]}{between}{''.join(map(str, action[2:]))}"


def _named_by_reader(plan: list[Action], needs: dict[str, str]) -> list[str]:
    """Return actions whose messages have the name of the operation that makes them, instead of the one that needs them."""
    return [str(each if each.verb == "run" else each._replace(op=needs.get(each.op, "?"))) for each in plan]


def _counted_from_0(plan: list[Action], needs: dict[str, str]) -> list[str]:
    return [str(each if each.verb == "run" or not each.peer else each._replace(peer=each.peer - 1)) for each in plan]


def _from_1(function: Function) -> Function:
    @wraps(function)
    def communication(orders: list[str], needs: dict[str, str], rank: int) -> Any:
        return in_words_of_the_page(function(orders, needs, rank + 1), _actions, lambda plan: _counted_from_0(plan, needs))

    return communication


def _readers(orders: list[str], needs: dict[str, str]) -> dict[str, str]:
    return {source: op for op, source in needs.items()}


def _with_own_inputs(orders: list[str], needs: dict[str, str]) -> dict[str, str]:
    """Return the inputs of all operations that need one: those of the same rank are the operations that stand before them in the line."""
    own = {op: before for line in orders for before, op in zip(line.split(), line.split()[1:], strict=False)}
    return own | needs


def _as_it_is_read(plan: list[Any], needs: dict[str, str]) -> Any:
    return plan


LAST_LINE_FIRST = Twist(
    "last-rank-first",
    "the lines of orders go from the last rank to rank 0: the first line belongs to the last rank",
    _of_orders(backwards, backwards),
)
LISTS_OF_OPERATIONS = Twist(
    "lists-of-operations",
    'each line of orders is a list of names, such as ["0F0", "0B0"], and no text',
    _of_orders(lambda lines: [line.split() for line in lines], lambda lines: [" ".join(line) for line in lines]),
)
WHO_NEEDS_IT = Twist(
    "who-needs-it",
    "needs is turned round: for an operation it gives the operation on another rank that needs its output",
    _of_needs(_readers),
)
OWN_INPUTS_TOO = Twist(
    "own-inputs-too",
    "needs also has operations of the same rank, which must run before and send no message",
    _of_needs(_with_own_inputs),
)
NAMED_BY_READER = Twist(
    "named-by-reader",
    "a message has the name of the operation that needs it: `send 1F0 to 1` and `receive 1F0 from 0` for the output of 0F0",
    _of_plan(_actions, _named_by_reader),
)
TUPLES = Twist(
    "tuples", "an action is a tuple: ('run', '1F0'), ('send', '0F0', 1) or ('receive', '0F0', 0)", _of_plan(_tuples, _as_it_is_read)
)
LAST_ACTION_FIRST = Twist(
    "last-action-first",
    "the returned list goes from the last action of the rank to its first",
    _of_plan(_actions, lambda plan, needs: [str(each) for each in plan[::-1]]),
)
RANKS_FROM_1 = Twist(
    "ranks-from-1", "ranks count from 1: rank 1 has the first line of orders, and messages name ranks in this way", _from_1
)

ACTION_TWISTS = (
    LAST_LINE_FIRST,
    TUPLES,
    WHO_NEEDS_IT,
    RANKS_FROM_1,
    NAMED_BY_READER,
    LISTS_OF_OPERATIONS,
    LAST_ACTION_FIRST,
    OWN_INPUTS_TOO,
    together(LAST_LINE_FIRST, TUPLES),
    together(WHO_NEEDS_IT, LAST_ACTION_FIRST),
    together(LISTS_OF_OPERATIONS, RANKS_FROM_1),
)
