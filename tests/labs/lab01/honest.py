"""Lab 1's build with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

from collections import Counter
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
Ranks = Callable[[int, int, str, int, int], tuple[int, int]]  # takes sender, receiver, kind, K and D


def with_ranks(change: Ranks) -> Callable[[Function], Function]:
    """Return the change of the two ranks of each message, wherever its kind stands."""

    def changed(messages: Function) -> Function:
        def own(stages: int, replicas: int, microbatches: int) -> list[Any]:
            sent = []
            for message in messages(stages, replicas, microbatches):
                (kind,) = (each for each in message if isinstance(each, str))
                place = int(message[0] == kind)
                ranks = change(message[place], message[place + 1], kind, stages, replicas)
                sent.append((*message[:place], *ranks, *message[place + 2 :]))
            return sent

        return own

    return changed


def numbered(number: Callable[[int, int, int, int], int]) -> Callable[[Function], Function]:
    """Return the change to another numbering of stage s of replica r, with K and D."""

    def change(sender: int, receiver: int, kind: str, stages: int, replicas: int) -> tuple[int, int]:
        return number(sender % stages, sender // stages, stages, replicas), number(receiver % stages, receiver // stages, stages, replicas)

    return with_ranks(change)


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab01.t6": {
        "stage-by-stage": numbered(lambda s, r, stages, replicas: s * replicas + r),
        "counted-down": numbered(lambda s, r, stages, replicas: stages * replicas - 1 - (r * stages + s)),
        "last-stage-first": numbered(lambda s, r, stages, replicas: (stages - 1 - s) * replicas + r),
        "ring-back": with_ranks(lambda sender, receiver, kind, *sizes: (receiver, sender) if kind == "ring" else (sender, receiver)),
        "microbatches-of-all": lambda messages: lambda stages, replicas, every: messages(stages, replicas, every // replicas),
        "kind-first": lambda messages: lambda *sizes: [(kind, sender, receiver) for sender, receiver, kind in messages(*sizes)],
        "counted": lambda messages: lambda *sizes: [(*message, count) for message, count in Counter(messages(*sizes)).items()],
    }
}
