"""The builds of lab 2 under each of their twists, written from the clause of the twist."""

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


SOLUTIONS = {
    ("lab02.t5", "reversed-stages"): _lines(_reversed_stages, _up),
    ("lab02.t5", "one-stage-further"): _lines(_one_further, _up),
    ("lab02.t5", "one-stage-back"): _lines(_one_back, _up),
    ("lab02.t5", "last-microbatch-first"): _lines(_same, _down),
    ("lab02.t5", "microbatch-0-last"): _lines(_same, _0_last),
    ("lab02.t5", "reversed-stages-last-microbatch-first"): _lines(_reversed_stages, _down),
    ("lab02.t5", "reversed-stages-microbatch-0-last"): _lines(_reversed_stages, _0_last),
    ("lab02.t5", "one-stage-further-last-microbatch-first"): _lines(_one_further, _down),
    ("lab02.t5", "one-stage-further-microbatch-0-last"): _lines(_one_further, _0_last),
    ("lab02.t5", "one-stage-back-last-microbatch-first"): _lines(_one_back, _down),
    ("lab02.t5", "one-stage-back-microbatch-0-last"): _lines(_one_back, _0_last),
    ("lab02.t6", "last-stage-first"): _simulator(down=True),
    **_with_down("slow-device-0", slow=0),
    **_with_down("slow-last-device", slow=-1),
    **_with_down("long-backwards", backwards=2),
    **_with_down("slow-messages", messages=2),
    **_with_down("later-begin", begin=5),
}
