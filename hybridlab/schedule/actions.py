"""The actions of one rank. A rank runs operations, and sends and receives the outputs of operations."""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from hybridlab.checks import each_of, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.schedule.schedule import Schedule

AND = " and "  # between messages that start together
# a number has at most nine digits, so that every number fits in an array
WORDS = re.compile(r"(run) (\S+)|(send) (\S+) to (\d{1,9})|(receive) (\S+) from (\d{1,9})")


class Action(NamedTuple):
    """One thing that a rank does: it runs an operation, or sends or receives the output of an operation.

    Parameters
    ----------
    verb : {"run", "send", "receive"}
        What the rank does.
    op : str
        The operation that the rank runs, or the operation whose output the message carries.
    peer : int
        For "send", the rank that receives the message. For "receive", the rank that sends it. -1 for "run".

    Examples
    --------
    >>> str(Action("receive", "0F0", 0))
    'receive 0F0 from 0'
    """

    verb: str
    op: str
    peer: int = -1

    def __str__(self) -> str:
        word = {"run": "", "send": f" to {self.peer}", "receive": f" from {self.peer}"}[self.verb]
        return f"{self.verb} {self.op}{word}"


def read_actions(text: Any) -> tuple[Action, ...]:
    """Return the actions of one entry of a rank's list: one action, or several messages that start together.

    Raises
    ------
    HybridLabError
        A part of ``text`` is not an action, or an operation is joined with another action.

    Examples
    --------
    >>> read_actions("send 1F2 to 2 and receive 2B0 from 2")
    (Action(verb='send', op='1F2', peer=2), Action(verb='receive', op='2B0', peer=2))
    """
    actions = tuple(map(_read_action, text.split(AND) if isinstance(text, str) else [text]))
    run = next((action for action in actions if action.verb == "run"), None)
    if run is not None and len(actions) > 1:
        raise HybridLabError(f"only sends and receives can be joined by 'and', but '{run}' runs an operation", "joined-operation")
    return actions


def written_actions(actions: Iterable[Action]) -> str:
    """Return the text of one entry of a rank's list.

    Raises
    ------
    HybridLabError
        ``actions`` is no list (``not-a-list``).

    Examples
    --------
    >>> written_actions([Action("send", "1F2", 2), Action("receive", "2B0", 2)])
    'send 1F2 to 2 and receive 2B0 from 2'
    """
    return AND.join(map(str, each_of(actions, "the actions of an entry are a list of Action")))


def _read_action(text: Any) -> Action:
    # A long text cannot be an action. The search would take long, so the text is not searched.
    found = WORDS.fullmatch(text) if isinstance(text, str) and len(text) < 100 else None
    if found is None:
        known = "'run 1F0', 'send 0F0 to 1' or 'receive 0F0 from 0'"
        raise HybridLabError(f"an action is a text such as {known}, not {short_repr(text)}", "not-an-action")
    verb, op, *peer = (part for part in found.groups() if part is not None)
    return Action(verb, op, int(peer[0]) if peer else -1)


def inputs_from_others(schedule: Schedule) -> dict[str, str]:
    r"""Return, for each operation that needs a message, the operation on another device whose output the message brings.

    Raises
    ------
    HybridLabError
        ``schedule`` is not a Schedule.

    Examples
    --------
    >>> from hybridlab.schedule import Schedule
    >>> inputs_from_others(Schedule.parse("0F0 0B0\n1F0 1B0"))
    {'0B0': '1B0', '1F0': '0F0'}
    """
    if not isinstance(schedule, Schedule):
        raise HybridLabError(f"inputs_from_others takes a Schedule of one pipeline, not {short_repr(schedule)}", "not-a-schedule")
    rows = np.flatnonzero(schedule.crosses).tolist()
    return {str(schedule.ops[row]): str(schedule.ops[schedule.source[row]]) for row in rows}
