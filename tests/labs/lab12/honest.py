"""The builds of lab 12 under each of their twists, written from the clause of the twist."""

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
Rows = list[dict[str, Any]]


def _orders(device_of: Callable[[int, int], int], runs: Callable[[int], list[int]]) -> Function:
    """Return interleaved 1F1B for the device whose operations line d has, and the order in which the M microbatches run."""

    def interleaved(devices: int, microbatches: int, chunks: int) -> list[str]:
        names, lines = runs(microbatches), []
        every = chunks * microbatches
        for line in range(devices):
            device = device_of(line, devices)

            def op(kind: str, number: int, device: int = device) -> str:
                group, within = divmod(number, chunks * devices)
                chunk, place = divmod(within, devices)
                chunk = chunk if kind == "F" else chunks - 1 - chunk
                return f"{chunk * devices + device}{kind}{names[group * devices + place]}"

            warmup = min(every, 2 * (devices - 1 - device) + (chunks - 1) * devices)
            ops = [op("F", number) for number in range(warmup)]
            for number in range(every):
                if number + warmup < every:
                    ops.append(op("F", number + warmup))
                ops.append(op("B", number))
            lines.append(" ".join(ops))
        return lines

    return interleaved


LINES: dict[str, Callable[[int, int], int]] = {
    "reversed-stages": lambda line, devices: devices - 1 - line,
    "one-stage-further": lambda line, devices: 0 if line == devices - 1 else line + 1,
    "one-stage-back": lambda line, devices: devices - 1 if line == 0 else line - 1,
}
RUNS: dict[str, Callable[[int], list[int]]] = {
    "last-microbatch-first": lambda microbatches: [*range(microbatches)][::-1],
    "microbatch-0-last": lambda microbatches: [*range(1, microbatches), 0],
}


def _path(
    times: Callable[[Rows], Rows] = lambda rows: rows, message: Callable[[float], float] = lambda latency: latency, step: int = 1
) -> Function:
    """Return a critical path after the rows and the latency have been brought into ms and into times from the begin."""

    def critical_path(rows: Rows, latency: float) -> list[str]:
        plain, late = times(rows), message(latency)
        ends = {row["op"]: row["end"] for row in plain}
        behind: dict[str, str] = {}
        last: dict[int, str] = {}
        for row in sorted(plain, key=lambda row: row["start"]):
            if row["device"] in last:
                behind[row["op"]] = last[row["device"]]
            last[row["device"]] = row["op"]
        op = max(ends, key=lambda each: ends[each])
        row_of = {row["op"]: row for row in plain}
        path = []
        while op:
            path.append(op)
            row = row_of[op]
            stage = row["stage"] - 1 if row["kind"] == "F" else row["stage"] + 1
            other = f"{stage}{row['kind']}{row['microbatch']}"
            before = behind.get(op, "")
            if before and abs(ends[before] - row["start"]) < 1e-6:
                op = before
            elif row["start"] > 1e-6:
                assert row_of[other]["device"] == row["device"] or abs(ends[other] + late - row["start"]) < 1e-6
                op = other
            else:
                op = ""
        return path[::-1][::step]

    return critical_path


def _from_lengths(rows: Rows) -> Rows:
    return [row | {"end": row["start"] + row["end"]} for row in rows]


def _from_time_left(rows: Rows) -> Rows:
    whole = max(row["start"] for row in rows)
    return [row | {"start": whole - row["start"], "end": whole - row["end"]} for row in rows]


def _halved(latency: float) -> float:
    return latency / 2


def _in_ms(latency: float) -> float:
    return 1000 * latency


SOLUTIONS = {
    **{("lab12.t5", name): _orders(line, lambda microbatches: [*range(microbatches)]) for name, line in LINES.items()},
    **{("lab12.t5", name): _orders(lambda line, devices: line, run) for name, run in RUNS.items()},
    **{("lab12.t5", f"{name}-{other}"): _orders(line, run) for name, line in LINES.items() for other, run in RUNS.items()},
    ("lab12.t6", "last-first"): _path(step=-1),
    ("lab12.t6", "there-and-back"): _path(message=_halved),
    ("lab12.t6", "lengths"): _path(_from_lengths),
    ("lab12.t6", "time-left"): _path(_from_time_left),
    ("lab12.t6", "seconds"): _path(message=_in_ms),
    ("lab12.t6", "lengths-and-last-first"): _path(_from_lengths, step=-1),
    ("lab12.t6", "time-left-and-last-first"): _path(_from_time_left, step=-1),
    ("lab12.t6", "there-and-back-and-last-first"): _path(message=_halved, step=-1),
    ("lab12.t6", "lengths-and-there-and-back"): _path(_from_lengths, _halved),
    ("lab12.t6", "time-left-and-seconds"): _path(_from_time_left, _in_ms),
}
