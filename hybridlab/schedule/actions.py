"""The actions of one rank. A rank runs operations, and sends and receives the outputs of operations."""

import re
from typing import Any, NamedTuple

import numpy as np

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError
from hybridlab.schedule.schedule import Schedule

# a number has at most nine digits, so that every number fits in an array
WORDS = re.compile(r"(run) (\S+)|(send) (\S+) to (\d{1,9})|(receive) (\S+) from (\d{1,9})")


class Action(NamedTuple):
    """One entry of a rank's list: the rank runs an operation, or sends or receives the output of an operation.

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
    >>> read_action("send 0F0 to 1")
    Action(verb='send', op='0F0', peer=1)
    >>> str(read_action("receive 0F0 from 0"))
    'receive 0F0 from 0'
    """

    verb: str
    op: str
    peer: int = -1

    def __str__(self) -> str:
        word = {"run": "", "send": f" to {self.peer}", "receive": f" from {self.peer}"}[self.verb]
        return f"{self.verb} {self.op}{word}"


def read_action(text: Any) -> Action:
    """Return the action that ``text`` names. Raise an error if ``text`` is not an action."""
    # A long text cannot be an action. The search would take long, so the text is not searched.
    found = WORDS.fullmatch(text) if isinstance(text, str) and len(text) < 100 else None
    if found is None:
        known = "'run 1F0', 'send 0F0 to 1' or 'receive 0F0 from 0'"
        raise HybridLabError(f"an action is a text such as {known}, not {short_repr(text)}", "not-an-action")
    verb, op, *peer = (part for part in found.groups() if part is not None)
    return Action(verb, op, int(peer[0]) if peer else -1)


def inputs_from_others(schedule: Schedule) -> dict[str, str]:
    r"""Return, for each operation that needs a message, the operation on another device whose output the message brings.

    >>> from hybridlab.schedule import Schedule
    >>> inputs_from_others(Schedule.parse("0F0 0B0\n1F0 1B0"))
    {'0B0': '1B0', '1F0': '0F0'}
    """
    rows = np.flatnonzero(schedule.crosses).tolist()
    return {str(schedule.ops[row]): str(schedule.ops[schedule.source[row]]) for row in rows}
