"""Lab 13's build with each twist, as a student writes it from the clause."""

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
Lines = list[list[str]]


def lines_of(
    devices: int, microbatches: int, times: dict[str, list[float]], latency: tuple[float, float], room: list[int], step: int, written: str
) -> Lines:
    """Return the operations of each stage; ``latency`` is that of forwards, then of gradients, and ``step`` is where forwards go."""
    first, last = (0, devices - 1) if step == 1 else (devices - 1, 0)
    clock = [0.0] * devices
    at: dict[tuple[str, int, int], float] = {("F", first, number): 0.0 for number in range(microbatches)}
    turn = {"F": [0] * devices, "I": [0] * devices, "W": [0] * devices}
    before = ["I"] * devices
    lines: Lines = [[] for _ in range(devices)]
    left = 3 * devices * microbatches
    while left:
        best: tuple[float, int, int, str] | None = None
        for stage in range(devices):
            for kind in ("F", "I", "W"):
                number = turn[kind][stage]
                if (kind, stage, number) not in at:
                    continue
                if kind == "F" and number - turn["W"][stage] >= room[stage]:
                    continue
                later = 2 if kind == "W" else int(before[stage] == kind)  # forwards and input gradients take turns
                tried = (max(clock[stage], at[kind, stage, number]), later, stage, kind)
                best = tried if best is None else min(best, tried)
        assert best
        start, _, stage, kind = best
        number = turn[kind][stage]
        turn[kind][stage] += 1
        end = clock[stage] = start + times[kind][stage]
        before[stage] = before[stage] if kind == "W" else kind
        lines[stage].append(written.format(stage=stage, kind=kind, number=number))
        if kind == "F" and stage == last:
            at["I", stage, number] = end
        elif kind == "F":
            at["F", stage + step, number] = end + latency[0]
        elif kind == "I":
            at["W", stage, number] = end
            at["I", stage - step, number] = end + latency[1]
        left -= 1
    return lines


def joined(lines: Lines) -> Any:
    return [" ".join(line) for line in lines]


def turned_round(lines: Lines) -> Any:
    return joined(lines)[::-1]


def exchanged(lines: Lines) -> Any:
    return [" ".join(line).translate(str.maketrans("IW", "WI")) for line in lines]


def as_it_is(lines: Lines) -> Any:
    return lines


def in_one_text(lines: Lines) -> Any:
    return "\n".join(joined(lines))


def scheduler(
    finish: Callable[[Lines], Any] = joined,
    room: Callable[[Any, int], list[int]] = lambda cap, devices: [cap] * devices,
    both: Callable[[Any], tuple[float, float]] = lambda latency: (latency, latency),
    step: int = 1,
    written: str = "{stage}{kind}{number}",
) -> Function:
    """Return a scheduler; each argument is what the student does about one clause."""

    def zero_bubble(
        devices: int,
        microbatches: int,
        forward: list[float],
        input_gradient: list[float],
        weight_gradient: list[float],
        latency: Any,
        cap: Any,
    ) -> Any:
        times = {"F": forward, "I": input_gradient, "W": weight_gradient}
        return finish(lines_of(devices, microbatches, times, both(latency), room(cap, devices), step, written))

    return zero_bubble


def of_gigabytes(cap: int, devices: int) -> list[int]:
    return [cap // 3] * devices


def one_each(cap: list[int], devices: int) -> list[int]:
    return cap


def two(latency: tuple[float, float]) -> tuple[float, float]:
    return latency[0], latency[1]


SOLUTIONS: dict[tuple[str, str], Function] = {
    ("lab13.t5", "last-stage-first"): scheduler(step=-1),
    ("lab13.t5", "caps"): scheduler(as_it_is, room=one_each),
    ("lab13.t5", "other-letters"): scheduler(exchanged),
    ("lab13.t5", "two-latencies"): scheduler(both=two),
    ("lab13.t5", "reversed-lines"): scheduler(turned_round),
    ("lab13.t5", "last-stage-first-and-gigabytes"): scheduler(in_one_text, room=of_gigabytes, step=-1),
    ("lab13.t5", "microbatch-first"): scheduler(as_it_is, written="{number}{kind}{stage}"),
    ("lab13.t5", "other-letters-and-caps"): scheduler(exchanged, room=one_each),
    ("lab13.t5", "gigabytes"): scheduler(room=of_gigabytes),
    ("lab13.t5", "reversed-lines-and-two-latencies"): scheduler(turned_round, both=two),
}
