"""The builds of lab 14 under each of their twists, written from the clause of the twist."""

from collections.abc import Callable
from typing import Any

Messages = list[tuple[str, str]]
Durations = Callable[[list[float], list[float], int, int], float]  # takes forward, backward, device and 1 for a backward


def plain(forward: list[float], backward: list[float], device: int, is_backward: int) -> float:
    return backward[device] if is_backward else forward[device]


def slow_first(forward: list[float], backward: list[float], device: int, is_backward: int) -> float:
    return plain(forward, backward, device, is_backward) * (2 if device == 0 else 1)


def slow_last(forward: list[float], backward: list[float], device: int, is_backward: int) -> float:
    return plain(forward, backward, device, is_backward) * (2 if device == len(forward) - 1 else 1)


def long_backwards(forward: list[float], backward: list[float], device: int, is_backward: int) -> float:
    return 2 * backward[device] if is_backward else forward[device]


def _slowdown(durations: Durations = plain, messages_take: int = 1, receiver_first: bool = False, last_first: bool = False) -> Any:
    """Return the function for the times of operations, for the length of a message, and for the way in which the messages are listed."""

    def slowdown(orders: list[str], forward: list[float], backward: list[float], latency: float) -> tuple[float, Messages]:
        place = {op: (d, n) for d, line in enumerate(orders) for n, op in enumerate(line.split())}

        def clock(late: float) -> tuple[dict[str, float], dict[str, str]]:
            end: dict[str, float] = {}
            waited_for: dict[str, str] = {}

            def finish(op: str) -> float:
                if op not in end:
                    d, n = place[op]
                    is_backward = int("B" in op)
                    other = f"{d + 1}B{op.split('B')[1]}" if is_backward else f"{d - 1}F{op.split('F')[1]}"
                    reasons = [(0.0, "")]
                    if n:
                        reasons.append((finish(orders[d].split()[n - 1]), orders[d].split()[n - 1]))
                    if other in place:
                        reasons.append((finish(other) + late, other))
                    begin, waited_for[op] = max(reasons)
                    end[op] = begin + durations(forward, backward, d, is_backward)
                return end[op]

            for op in place:
                finish(op)
            return end, waited_for

        end, waited_for = clock(latency * messages_take)
        op = max(end, key=lambda each: end[each])
        messages = []
        while waited_for[op]:
            if place[waited_for[op]][0] != place[op][0]:
                messages.append((op, waited_for[op]) if receiver_first else (waited_for[op], op))
            op = waited_for[op]
        return max(end.values()) - max(clock(0.0)[0].values()), messages if last_first else messages[::-1]

    return slowdown


def _least(recomputed: float = 1.0, messages_take: float = 1.0, last_slower: bool = False) -> Callable[..., int]:
    """Return the function for the share of a forward that GPipe repeats, the length of a message, and what is returned."""

    def least_microbatches(devices: int, forward: float, backward: float, latency: float, most: int) -> int:
        late = latency * messages_take
        more = 0  # messages of 1F1B beside those of GPipe
        for count in range(1, most + 1):
            if devices > 1 and count > 2 and (count - 2) % devices:
                more += 2
            if (count + devices - 1) * recomputed * forward <= more * late:
                return count - 1 if last_slower else count
        return most if last_slower else 0

    return least_microbatches


SOLUTIONS: dict[tuple[str, str], Callable[..., Any]] = {
    ("lab14.t3", "slow-messages"): _slowdown(messages_take=2),
    ("lab14.t3", "receiver-first"): _slowdown(receiver_first=True),
    ("lab14.t3", "slow-device-0"): _slowdown(slow_first),
    ("lab14.t3", "last-message-first"): _slowdown(last_first=True),
    ("lab14.t3", "long-backwards"): _slowdown(long_backwards),
    ("lab14.t3", "slow-last-device"): _slowdown(slow_last),
    ("lab14.t3", "slow-messages-and-receiver-first"): _slowdown(messages_take=2, receiver_first=True),
    ("lab14.t3", "slow-device-0-and-last-message-first"): _slowdown(slow_first, last_first=True),
    ("lab14.t3", "long-backwards-and-receiver-first"): _slowdown(long_backwards, receiver_first=True),
    ("lab14.t3", "slow-last-device-and-last-message-first"): _slowdown(slow_last, last_first=True),
    ("lab14.t4", "half-recomputed"): _least(recomputed=0.5),
    ("lab14.t4", "four-links"): _least(messages_take=4),
    ("lab14.t4", "last-slower"): _least(last_slower=True),
    ("lab14.t4", "there-and-back"): _least(messages_take=0.5),
    ("lab14.t4", "half-recomputed-and-four-links"): _least(recomputed=0.5, messages_take=4),
    ("lab14.t4", "half-recomputed-and-last-slower"): _least(recomputed=0.5, last_slower=True),
    ("lab14.t4", "four-links-and-last-slower"): _least(messages_take=4, last_slower=True),
    ("lab14.t4", "there-and-back-and-last-slower"): _least(messages_take=0.5, last_slower=True),
}
