"""The builds of lab 2 under each of their twists, written from the clause of the twist."""

import re
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def _lines(stage_of: Callable[[int, int], int], runs: Callable[[int], list[int]]) -> Function:
    """Return 1F1B for the stage of line d of K, and the order in which the M microbatches run."""

    def one_f_one_b(devices: int, microbatches: int) -> list[str]:
        names = runs(microbatches)
        lines = []
        for line in range(devices):
            stage = stage_of(line, devices)
            forwards, backwards = [f"{stage}F{name}" for name in names], [f"{stage}B{name}" for name in names]
            ops = []
            while len(forwards) > max(microbatches - (devices - 1 - stage), 0):
                ops.append(forwards.pop(0))
            while forwards:
                ops += [forwards.pop(0), backwards.pop(0)]
            lines.append(" ".join(ops + backwards))
        return lines

    return one_f_one_b


def _same(line: int, devices: int) -> int:
    return line


def _reversed_stages(line: int, devices: int) -> int:
    return devices - 1 - line


def _one_further(line: int, devices: int) -> int:
    return 0 if line == devices - 1 else line + 1


def _one_back(line: int, devices: int) -> int:
    return devices - 1 if line == 0 else line - 1


def _up(microbatches: int) -> list[int]:
    return [*range(microbatches)]


def _down(microbatches: int) -> list[int]:
    return [*range(microbatches)][::-1]


def _0_last(microbatches: int) -> list[int]:
    return [*range(1, microbatches), 0]


def _simulator(down: bool = False, slow: int | None = None, backwards: float = 1, messages: float = 1, begin: float = 0) -> Function:
    """Return a simulator: forwards go down, the slow device, by what backwards and messages are longer, and when the step begins."""

    def simulate(orders: list[str], forward: list[float], backward: list[float], latency: float) -> dict[str, tuple[float, float]]:
        devices = len(orders)
        lines, step = [line.split() for line in orders], -1 if down else 1
        done: dict[str, tuple[float, float]] = {}
        free = [begin] * devices
        moved = True
        while moved:
            moved = False
            for device in range(devices):
                if not lines[device]:
                    continue
                op = lines[device][0]
                kind = "F" if "F" in op else "B"
                microbatch = op.partition(kind)[2]
                other = device - step if kind == "F" else device + step
                ready = [free[device]]
                wanted = [(f"{device}F{microbatch}", 0.0)] if kind == "B" else []
                if 0 <= other < devices:
                    wanted.append((f"{other}{kind}{microbatch}", messages * latency))
                if any(need not in done for need, _ in wanted):
                    continue
                start = max(ready + [done[need][1] + late for need, late in wanted])
                lasts = forward[device] if kind == "F" else backwards * backward[device]
                if slow is not None and device == slow % devices:
                    lasts *= 2
                free[device] = start + lasts
                done[op] = (start, free[device])
                del lines[device][0]
                moved = True
        return done

    return simulate


def _with_down(name: str, **changed: Any) -> dict[tuple[str, str], Function]:
    return {
        ("lab02.t6", name): _simulator(**changed),
        ("lab02.t6", f"last-stage-first-{name}"): _simulator(down=True, **changed),
    }


def last_stage_first(simulate: Function) -> Function:
    def own(orders: list[str], forward: list[float], backward: list[float], latency: float) -> Any:
        def turned(op: str) -> str:
            stage, kind, microbatch = re.split("([FB])", op)
            return f"{len(orders) - 1 - int(stage)}{kind}{microbatch}"

        lines = [" ".join(map(turned, line.split())) for line in orders]
        return {turned(op): span for op, span in simulate(lines[::-1], forward[::-1], backward[::-1], latency).items()}

    return own


def slow(place: int) -> Callable[[Function], Function]:
    def change(simulate: Function) -> Function:
        def own(orders: list[str], forward: list[float], backward: list[float], latency: float) -> Any:
            times = [list(forward), list(backward)]
            for each in times:
                each[place] += each[place]
            return simulate(orders, *times, latency)

        return own

    return change


TWISTED = {
    "lab02.t6": {
        "slow-device-0": slow(0),
        "slow-last-device": slow(-1),
        "slow-messages": lambda simulate: lambda orders, forward, backward, latency: simulate(orders, forward, backward, 2 * latency),
        "microseconds": lambda simulate: lambda orders, forward, backward, latency: simulate(orders, forward, backward, latency / 1000),
        "long-backwards": lambda simulate: (
            lambda orders, forward, backward, latency: simulate(orders, forward, [time + time for time in backward], latency)
        ),
        "later-begin": lambda simulate: lambda *given: {op: (start + 5, end + 5) for op, (start, end) in simulate(*given).items()},
        "durations": lambda simulate: lambda *given: {op: (start, end - start) for op, (start, end) in simulate(*given).items()},
        "last-stage-first": last_stage_first,
    }
}
