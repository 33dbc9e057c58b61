"""Test lab 12's tasks: every way to write the right answer passes, and every typical wrong answer gets the right code."""

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from cases import in_turn
from forms import form_by_form
from oracle import nodes, times, uniform
from solutions import solutions_of

from hybridlab import Costs, Schedule, build, check, simulate
from hybridlab.course.labs.lab12.interleaved import goal_of
from hybridlab.course.labs.lab12.tasks import makespan
from hybridlab.course.tasks import TASKS

FOLDED = [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0]

Rows = list[dict[str, Any]]


def orders(
    warmup: Callable[[int, int, int], int] = lambda d, k, v: 2 * (k - 1 - d) + (v - 1) * k,
    stage: Callable[[int, int, int, int], int] = lambda c, d, k, v: c * k + d,
    group: Callable[[int, int], int] = lambda k, m: k,
    last_chunk_first: bool = True,
    pair: str = "FB",
    rest: bool = True,
) -> Callable[[int, int, int], list[str]]:
    """Return interleaved 1F1B as a student would write it; each argument changes one part."""

    def interleaved(devices: int, microbatches: int, chunks: int) -> list[str]:
        size, lines = group(devices, microbatches), []
        for d in range(devices):
            ops: dict[str, list[str]] = {"F": [], "B": []}
            for first in range(0, microbatches, size):
                for c in range(chunks):
                    for m in range(first, min(first + size, microbatches)):
                        ops["F"].append(f"{stage(c, d, devices, chunks)}F{m}")
                        back = chunks - 1 - c if last_chunk_first else c
                        ops["B"].append(f"{stage(back, d, devices, chunks)}B{m}")
            ahead = max(min(warmup(d, devices, chunks), len(ops["F"])), 0)
            line, left = ops["F"][:ahead], {"F": ops["F"][ahead:], "B": ops["B"]}
            while left["F"]:
                line += [left[kind].pop(0) for kind in pair]
            lines.append(" ".join(line + left["B"] * rest))
        return lines

    return interleaved


def examples_alone(devices: int, microbatches: int, chunks: int) -> list[str]:
    """The two examples of the lab, and nothing else."""
    if devices == 1:
        return ["0F0 1F0 1B0 0F1 0B0 1F1 1B1 0B1"]
    return ["0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1", "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1"]


def all_forwards_then_all_backwards(devices: int, microbatches: int, chunks: int) -> list[str]:
    """The forwards in the right order, and then the backwards."""
    lines = []
    for device in range(devices):
        forwards, backwards = [], []
        for first in range(0, microbatches, devices):
            for chunk in range(chunks):
                for microbatch in range(first, first + devices):
                    forwards.append(f"{chunk * devices + device}F{microbatch}")
                    backwards.append(f"{(chunks - 1 - chunk) * devices + device}B{microbatch}")
        lines.append(" ".join(forwards + backwards))
    return lines


def for_many_chunks(wrong: Callable[[int, int, int], list[str]]) -> Callable[[int, int, int], list[str]]:
    """Return a function that is wrong only from three chunks on."""
    return lambda k, m, v: (wrong if v > 2 else orders())(k, m, v)


def back_from_the_end(rows: Rows, latency: float, rule: str = "") -> list[str]:
    """Return a critical path as a student would write it; a rule makes it wrong."""
    row_of = {row["op"]: row for row in rows}
    on_device = {row["op"]: [each for each in rows if each["device"] == row["device"]] for row in rows}
    now = max(rows, key=lambda row: row["end"] - 1e9 * (rule == "device 0" and row["device"] > 0))
    path = [now["op"]]
    while now["start"] > 0 and len(path) < 10_000:
        late = {}
        place = on_device[now["op"]].index(now)
        if place and rule != "inputs":
            before = on_device[now["op"]][place - 1]
            late[before["op"]] = before["end"]
        if now["kind"] == "W":
            other = f"{now['stage']}I{now['microbatch']}"
        else:
            other = f"{now['stage'] + (-1 if now['kind'] == 'F' else 1)}{now['kind']}{now['microbatch']}"
        if other not in row_of and rule in ("inputs", "at home, too") and now["kind"] in "BI":
            other = f"{now['stage']}F{now['microbatch']}"
        if other in row_of:
            sent = row_of[other]["device"] != now["device"] or rule.startswith("at home")
            late[other] = row_of[other]["end"] + (latency if sent and rule != "no latency" else 0)
            if rule == "input first":
                late = {other: late[other]}
        if not late:
            break
        now = row_of[(min if rule == "earlier" else max)(late, key=lambda op: late[op])]
        path.append(now["op"])
    return path[::-1]


def by(rule: str) -> Callable[[Rows, float], list[str]]:
    return lambda rows, latency: back_from_the_end(rows, latency, rule)


def changed_path(change: Callable[[list[str]], Any]) -> Callable[[Rows, float], Any]:
    return lambda rows, latency: change(back_from_the_end(rows, latency))


def earlier_of_two_ends(rows: Rows, latency: float) -> list[str]:
    """A path that is right in short timelines, and takes the earlier of two ends in longer ones."""
    return back_from_the_end(rows, latency, "earlier" if len(rows) > 20 else "")


def any_fit(rows: Rows, latency: float) -> list[str]:
    """Take the last row that ends at the right time, needed or not."""
    now = max(rows, key=lambda row: row["end"])
    path = [now["op"]]
    while now["start"] > 0:
        now = [row for row in rows if abs(row["end"] + latency * (row["device"] != now["device"]) - now["start"]) < 1e-6][-1]
        path.append(now["op"])
    return path[::-1]


def the_examples_alone(rows: Rows, latency: float) -> list[str]:
    return ["0F0", "1F0", "1B0", "0B0"] if len(rows) == 4 else ["0F0", "1F0", "1B0", "1F1", "1B1", "0B1"]


def sorting(rows: Rows, latency: float) -> list[str]:
    path = back_from_the_end(rows, latency)
    rows.sort(key=lambda row: -row["end"])
    return path


def of_last(name: str) -> Callable[[Rows, float], list[str]]:
    """Return all operations of the device, or of the microbatch, of the last operation, in the order of their starts."""

    def path(rows: Rows, latency: float) -> list[str]:
        last = max(rows, key=lambda row: row["end"])
        return [row["op"] for row in sorted(rows, key=lambda row: row["start"]) if row[name] == last[name]]

    return path


# Each row has a task, a wrong answer, its code, and the words filled into its sentence.
WRONG: list[tuple[Any, ...]] = [
    ("lab12.t1", [0, 1, 2] * 4, "looped"),
    ("lab12.t1", [1, 2, 3, 3, 2, 1] * 2, "devices-from-1"),
    ("lab12.t1", [2, 1, 0, 0, 1, 2] * 2, "reversed"),
    ("lab12.t1", [0] * 4 + [1] * 4 + [2] * 4, "one-long-chunk"),
    ("lab12.t1", [0, 1, 2, 1] * 3, "one-stage-a-turn"),
    ("lab12.t1", [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 3], "no-such-device", "device 3"),
    ("lab12.t1", [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0.5], "no-such-device", "device 0.5"),
    ("lab12.t1", [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 1], "uneven", "3, 5 and 4"),
    ("lab12.t1", [0, 1, 2, 2, 1, 0, 2, 1, 0, 0, 1, 2], "wrong-value", "stage 6", "device 2", "chunk 2", "up"),
    ("lab12.t1", [0, 1, 2, 0, 1, 2, 2, 1, 0, 0, 1, 2], "wrong-value", "stage 3", "device 0", "chunk 1", "down"),
    ("lab12.t1", [0, 1, 2, 2, 1, 0], "wrong-length"),
    ("lab12.t1", "012210012210", "not-a-list"),
    ("lab12.t2", [480, 552], "swapped"),
    ("lab12.t2", [480, 480], "no-message-between-chunks"),
    ("lab12.t2", [552, 552], "messages-at-turns"),
    ("lab12.t2", [46, 40], "one-microbatch-alone"),
    ("lab12.t2", [276, 240], "one-way"),
    ("lab12.t2", [552, 20], "one-microbatch-one-way"),
    ("lab12.t2", [120, 480], "no-chunks"),
    ("lab12.t2", [576, 480], "one-an-operation"),
    ("lab12.t2", [552, 456], "wrong-value"),
    ("lab12.t2", 552, "not-a-list"),
    ("lab12.t3", 588, "no-messages"),
    ("lab12.t3", 596, "no-fill-and-drain"),
    ("lab12.t3", 740, "1f1b"),
    ("lab12.t3", 616, "one-way"),
    ("lab12.t3", 648, "vk-messages"),
    ("lab12.t3", 604, "messages-of-one-chunk"),
    ("lab12.t3", 636, "folded"),
    ("lab12.t3", 1428, "all-microbatches"),
    ("lab12.t3", 284, "work-divided"),
    ("lab12.t3", 540, "work-alone"),
    ("lab12.t3", 0.644, "seconds"),
    ("lab12.t3", 500, "wrong-value"),
    ("lab12.t3", "644", "not-a-number"),
    ("lab12.t4", [3, 12], "too-few", "Interleaved 1F1B", "2778.0 ms", "3 chunks", "336.0 ms"),
    ("lab12.t4", [6, 12], "too-many", "Interleaved 1F1B", "2754.0 ms", "6 chunks", "282.0 ms"),
    ("lab12.t4", [4, 4], "too-few", "Looped BFS", "2598.0 ms", "4 chunks", "252.0 ms"),
    ("lab12.t4", [4, 24], "too-many", "Looped BFS", "2572.0 ms", "24 chunks", "226.0 ms"),
    ("lab12.t4", [12, 4], "too-many", "Interleaved 1F1B"),
    ("lab12.t4", [5, 12], "not-divisible", "2, 3, 4, 6, 8, 12 or 24", "5"),
    ("lab12.t4", [4.5, 12], "not-divisible", "4.5"),
    ("lab12.t4", [1, 12], "not-divisible", "not 1"),
    ("lab12.t4", [4, 7], "not-divisible", "not 7"),
    ("lab12.t4", [2, 5], "too-few", "2 chunks"),
    ("lab12.t4", 4, "not-a-list"),
    ("lab12.t5", lambda k, m, v: build("1f1b", k, m), "no-chunks", "2 chunks", "1 stage"),
    ("lab12.t5", lambda k, m, v: build("looped-bfs", k, m, v) if v > 1 else build("gpipe", k, m), "breadth-first", "0F1"),
    ("lab12.t5", orders(lambda d, k, v: k - 1 - d + (v - 1) * k), "warm-up-of-1f1b", "2 devices, 4 microbatches"),
    ("lab12.t5", orders(lambda d, k, v: 2 * (k - 1 - d)), "no-forwards-for-the-chunks"),
    ("lab12.t5", orders(lambda d, k, v: 2 * (k - 1 - d) + v * k), "one-chunk-too-many"),
    ("lab12.t5", orders(lambda d, k, v: 2 * (k - 1 - d) + (v - 1) * k + 1), "warm-up-too-long"),
    ("lab12.t5", orders(lambda d, k, v: 2 * (k - 1 - d) + (v - 1) * k - 1), "warm-up-too-short"),
    ("lab12.t5", orders(lambda d, k, v: 2 * (k - 1) + (v - 1) * k), "same-warm-up", "device 1"),
    ("lab12.t5", orders(lambda d, k, v: 2 * d + (v - 1) * k), "reversed-warm-up"),
    ("lab12.t5", all_forwards_then_all_backwards, "all-forwards-first"),
    ("lab12.t5", examples_alone, "another-number", "2 microbatches, not 1"),
    ("lab12.t5", orders(last_chunk_first=False), "first-chunk-first", "0B0"),
    ("lab12.t5", orders(group=lambda k, m: 1), "one-microbatch-at-a-time", "2 devices, 2 microbatches"),
    ("lab12.t5", orders(group=lambda k, m: m), "no-groups", "1 device, 2 microbatches"),
    ("lab12.t5", orders(stage=lambda c, d, k, v: c * k + (k - 1 - d if c % 2 else d)), "folded"),
    ("lab12.t5", orders(stage=lambda c, d, k, v: d * v + c), "stages-in-a-row", "stage 1 is on device 0"),
    ("lab12.t5", orders(pair="BF"), "backward-first"),
    ("lab12.t5", orders(rest=False), "no-cool-down"),
    ("lab12.t5", for_many_chunks(lambda k, m, v: orders()(k, m, 2)), "another-number-of-stages", "2 stages, not 3"),
    ("lab12.t5", lambda k, m, v: orders()(k, 1, v) if k == 1 else orders()(k, m, v), "another-number", "1 microbatch, not 3"),
    ("lab12.t5", lambda k, m, v: orders()(k, m, v)[::-1], "another-placement", "stage 0 is on device 1"),
    ("lab12.t5", lambda k, m, v: build("hanayo", k, m, v) if v == 2 < k else orders()(k, m, v), "another-placement", "3 microbatches"),
    ("lab12.t5", lambda k, m, v: [*orders()(k, m, v), "0F0"], "another-size", "2 lines"),
    ("lab12.t5", lambda k, m, v: build("zb-h1", k, m) if v == 1 else orders()(k, m, v), "split-backward"),
    (
        "lab12.t5",
        orders(lambda d, k, v: (3 if k > 3 else 4) * (k - 1 - d) // 2 + (v - 1) * k),
        "another-order",
        "4 devices, 8 microbatches",
    ),
    ("lab12.t5", lambda k, m, v: build("1f1b", k, m) if v == 1 else orders()(k, m, v), "one-chunk-as-1f1b", "device 0 runs 0B0"),
    ("lab12.t5", for_many_chunks(orders(lambda d, k, v: 3 * (k - 1 - d) + (v - 1) * k)), "larger", "3 chunks"),
    ("lab12.t5", lambda k, m, v: "0F0 0B0", "another-number-of-stages", "1 stage, not 2"),
    ("lab12.t5", lambda k, m, v: [], "empty"),
    ("lab12.t5", lambda *size: [line.replace(" ", "") for line in orders()(*size)], "no-space", "0F00B0"),
    ("lab12.t5", lambda k, m, v: {*orders()(k, m, v)}, "not-a-list"),
    ("lab12.t5", lambda k, m: [], "signature", "interleaved(devices, microbatches, chunks)"),
    ("lab12.t5", lambda k, m, v: build("interleaved", k, m, v), "raises", "1 chunk"),
    ("lab12.t5", "0F0 0B0", "not-a-function"),
    ("lab12.t6", by("device 0"), "not-to-the-end", "where device 1 ends last", "go back"),
    ("lab12.t6", by("no latency"), "latency-forgotten", "latency 3 ms", "starts at"),
    ("lab12.t6", by("at home"), "latency-within-a-device", "1 device with 2 chunks"),
    ("lab12.t6", by("at home, too"), "latency-after-an-operation-of-its-own"),
    ("lab12.t6", by("inputs"), "one-microbatch", "0F2"),
    ("lab12.t6", by("input first"), "inputs-first"),
    ("lab12.t6", of_last("device"), "one-device", "0F0 ends at"),
    ("lab12.t6", of_last("microbatch"), "one-microbatch"),
    ("lab12.t6", earlier_of_two_ends, "gap", "it waited for something else"),
    ("lab12.t6", any_fit, "not-needed", "does not wait for"),
    ("lab12.t6", changed_path(lambda path: path[1:] if len(path) > 1 else path), "first-operation-missing", "0B0"),
    ("lab12.t6", changed_path(lambda path: path[:-1]), "not-to-the-end", "0F0"),
    ("lab12.t6", changed_path(lambda path: path[::-1]), "not-to-the-end"),
    ("lab12.t6", changed_path(lambda path: [path[0], *path[2:]] if len(path) > 9 else path), "no-dependency"),
    ("lab12.t6", changed_path(lambda path: [*path[:-1], "99F0"]), "no-such-operation", "'99F0'"),
    ("lab12.t6", changed_path(lambda path: [path[0], path[0], *path[1:]]), "no-dependency", "0F0 does not wait for 0F0"),
    ("lab12.t6", changed_path(lambda path: path[2:] if len(path) > 9 else path), "not-from-the-begin", "0 ms"),
    ("lab12.t6", the_examples_alone, "no-such-operation"),
    ("lab12.t6", changed_path(set), "not-a-list"),
    ("lab12.t6", changed_path(len), "not-a-list", "2"),
    ("lab12.t6", changed_path(lambda path: []), "empty"),
    ("lab12.t6", changed_path(lambda path: [*path, float("nan")]), "not-text", "nan"),
    ("lab12.t6", changed_path(lambda path: [None, *path]), "not-text", "None"),
    ("lab12.t6", sorting, "changes-its-argument"),
    ("lab12.t6", lambda rows: [], "signature", "critical_path(rows, latency)"),
    ("lab12.t6", ["0F0"], "not-a-function"),
]

# Each row has a task and another way to write its right answer.
RIGHT: list[tuple[str, Any]] = [
    ("lab12.t1", np.array(FOLDED)),
    ("lab12.t1", tuple(float(device) for device in FOLDED)),
    ("lab12.t2", (552, np.int64(480))),
    ("lab12.t2", np.array([552, 480])),
    ("lab12.t3", 644.0),
    ("lab12.t3", np.int64(644)),
    ("lab12.t3", Fraction(644)),
    ("lab12.t4", (4, 12)),
    ("lab12.t4", [4.0, np.int64(12)]),
    ("lab12.t5", orders()),
    (
        "lab12.t5",
        form_by_form(orders(), "\n".join, lambda lines: [line.split() for line in lines], lambda lines: Schedule.parse("\n".join(lines))),
    ),
    ("lab12.t6", back_from_the_end),
    ("lab12.t6", form_by_form(back_from_the_end, tuple, np.array, iter)),
]


def test_a_fold_puts_neighbouring_stages_on_neighbouring_devices_and_turns_where_it_is() -> None:
    """From one stage to the next, the device is one up or one down, but at a turn it stays the same."""
    walk, step = [0], 1
    while len(walk) < 12:
        turns = len(walk) % 3 == 0
        step = -step if turns else step
        walk.append(walk[-1] if turns else walk[-1] + step)
    assert walk == FOLDED == solutions_of("lab12")["lab12.t1"]


def numbers_of(key: str, seed: int | None) -> list[Any]:
    """The numbers in the prompt of a task."""
    return [
        float(number) if "." in number else int(number) for number in re.findall(r"\b\d+(?:\.\d+)?\b", TASKS[key].instance(seed).prompt)
    ]


@in_turn("seed", [None, *range(6)])
def test_messages_are_the_changes_of_device(seed: int | None) -> None:
    devices, microbatches, chunks = numbers_of("lab12.t2", seed)
    loop = [stage % devices for stage in range(chunks * devices)]
    fold = [(chunk % 2) * (devices - 1) + (1 - 2 * (chunk % 2)) * place for chunk in range(chunks) for place in range(devices)]
    counted = [2 * microbatches * sum(here != there for here, there in pairwise(path)) for path in (loop, fold)]
    assert check("lab12.t2", counted, seed=seed).passed


@in_turn("seed", [None, *range(6)])
def test_the_placement_of_other_sizes_goes_up_and_down(seed: int | None) -> None:
    stages, devices, chunks, _ = numbers_of("lab12.t1", seed)
    up = list(range(devices))
    assert check("lab12.t1", (up + up[::-1]) * (chunks // 2), seed=seed).passed
    assert stages == chunks * devices


@in_turn("seed", [None, *range(4)])
def test_the_step_by_formula_is_the_oracles(seed: int | None) -> None:
    chunks, devices, microbatches, forward, backward, latency = numbers_of("lab12.t3", seed)
    schedule = build("interleaved", devices, microbatches, chunks)
    ends = times(nodes(schedule), uniform(devices, forward, backward, p2p=latency), chunks=chunks)
    assert check("lab12.t3", max(end for _, end in ends.values()), seed=seed).passed


@in_turn("place, name", [(0, "interleaved"), (1, "looped-bfs")])
def test_no_cut_of_24_layers_is_faster(place: int, name: str) -> None:
    """Looped BFS by its rule: a chunk begins when the one before it has run and its first microbatch has come round."""
    found = {}
    for chunks in (2, 3, 4, 6, 8, 12, 24):
        ways = [time / chunks for time in (48, 96)]
        rounds = sum(max(16 * time, 8 * (time + 3)) for time in ways)
        looped = (chunks - 1) * rounds + sum(7 * (time + 3) + 16 * time for time in ways)
        formula = (16 + 7 / chunks) * 144 + 2 * (8 * chunks - 1) * 3  # too short where a message outlasts a chunk's forward
        found[chunks] = looped if name == "looped-bfs" else formula
        exact = name == "looped-bfs" or 48 / chunks > 3
        assert makespan(name, 8, 16, chunks, 48, 3) >= found[chunks] - 1e-9
        assert not exact or makespan(name, 8, 16, chunks, 48, 3) == pytest.approx(found[chunks])
    assert min(found, key=found.__getitem__) == solutions_of("lab12")["lab12.t4"][place]


def dependencies(rows: Rows, latency: float) -> dict[str, dict[str, float]]:
    """Return for each operation when each operation that it needs, and the one before it on its device, lets it start."""
    spot = {(row["kind"], row["stage"], row["microbatch"]): row for row in rows}
    found: dict[str, dict[str, float]] = {row["op"]: {} for row in rows}
    for before, row in pairwise(rows):
        if before["device"] == row["device"]:
            found[row["op"]][before["op"]] = before["end"]
    for (kind, stage, microbatch), row in spot.items():
        needed = {"F": [("F", stage - 1)], "W": [("I", stage)]}.get(kind, [(kind, stage + 1), ("F", stage)])
        for source in (spot[each, place, microbatch] for each, place in needed if (each, place, microbatch) in spot):
            found[row["op"]][source["op"]] = source["end"] + latency * (source["device"] != row["device"])
    return found


def all_paths(rows: Rows, latency: float, most: int = 40) -> list[list[str]]:
    """Return critical paths by a search from the start, at most so many."""
    starts, last = {row["op"]: row["start"] for row in rows}, max(row["end"] for row in rows)
    ends = {row["op"]: row["end"] for row in rows}
    lets: dict[str, list[str]] = {op: [] for op in starts}
    for op, times_of_needs in dependencies(rows, latency).items():
        for before, time in times_of_needs.items():
            if abs(time - starts[op]) < 1e-9:
                lets[op].append(before)
    found: list[list[str]] = []
    open_paths = [[op] for op in ends if abs(ends[op] - last) < 1e-9]
    while open_paths and len(found) < most:
        path = open_paths.pop()
        if starts[path[0]] == 0:
            found.append(path)
        open_paths += [[before, *path] for before in lets[path[0]]]
    return found


def test_every_critical_path_is_accepted_and_its_length_is_the_makespan() -> None:
    build_of, several = TASKS["lab12.t6"].instance(None).data, 0
    for case in build_of.cases(np.random.default_rng(3)):
        rows, latency = case.arguments
        paths = all_paths(rows, latency)
        row_of = {row["op"]: row for row in rows}
        assert paths, case.words
        several += len(paths) > 1
        for path in paths:
            steps = [row_of[op] for op in path]
            lengths = sum(row["end"] - row["start"] for row in steps)
            messages = sum(one["device"] != other["device"] for one, other in pairwise(steps))
            assert lengths + messages * latency == pytest.approx(max(row["end"] for row in rows))
            assert build_of.judge(path, rows, latency).passed, (case.words, path)
    assert several > 8


def test_no_other_chain_is_a_critical_path() -> None:
    """Drop, exchange or repeat any operation of a right path: the judge refuses all of them."""
    build_of = TASKS["lab12.t6"].instance(None).data
    for case in list(build_of.cases(np.random.default_rng(4)))[:14]:
        path = all_paths(*case.arguments, most=1)[0]
        others = [path[:place] + path[place + 1 :] for place in range(len(path)) if len(path) > 1]
        others += [path[: place + 1] + path[place:] for place in range(len(path))]
        others += [[*path[:place], path[place + 1], path[place], *path[place + 2 :]] for place in range(len(path) - 1)]
        assert not any(build_of.judge(other, *case.arguments).passed for other in others), case.words


def test_the_critical_paths_wait_for_as_many_messages_as_latency_lengthens_the_step() -> None:
    """Another way to count, and the one with which the lab makes its tables."""
    for name, chunks, waits in (("gpipe", 1, 14), ("1f1b", 1, 40), ("interleaved", 2, 30), ("hanayo", 4, 124)):
        run = simulate(build(name, 8, 16, chunks), Costs(forward=50, backward=100, p2p=4))
        rows = run.to_rows()
        device_of = {row["op"]: row["device"] for row in rows}
        path = solutions_of("lab12")["lab12.t6"](rows, 4)
        assert sum(device_of[one] != device_of[other] for one, other in pairwise(path)) == waits


@in_turn("size", [(1, 1, 1), (1, 3, 1), (3, 6, 1), (8, 16, 1), (1, 2, 3), (2, 2, 2), (4, 4, 3), (3, 9, 2), (8, 24, 3)])
def test_the_goal_is_the_order_of_the_rule(size: tuple[int, int, int]) -> None:
    """With one chunk, too, where the library has it under another name."""
    assert str(goal_of(*size)) == str(Schedule.parse("\n".join(orders()(*size))))


def test_the_sizes_have_every_edge() -> None:
    sizes = [case.arguments for case in TASKS["lab12.t5"].instance(None).data.cases(np.random.default_rng(5))]
    for edge in (
        lambda k, m, v: k == 1 < v,
        lambda k, m, v: v == 1 < k,
        lambda k, m, v: m == k > 2,
        lambda k, m, v: k * m * v > 500,
        lambda k, m, v: k == m == v == 1,
    ):
        assert any(edge(*size) for size in sizes)
    assert all(m % k == 0 for k, m, _ in sizes)


@in_turn(
    "function, share",
    [
        (lambda k, m, v: build("1f1b", k, m) if v == 1 else orders()(k, m, v), 2 / 3),
        (orders(lambda d, k, v: k - 1 - d + (v - 1) * k), 2 / 3),
        (orders(lambda d, k, v: 10**6), 1 / 2),
        (lambda k, m, v: build("looped-bfs", k, m, v) if v > 1 else build("gpipe", k, m), 1 / 2),
        (orders(last_chunk_first=False), 0),
        (lambda k, m, v: build("1f1b", k, m), 0),
    ],
)
def test_partial_credit_for_orders_that_can_run(function: Any, share: float) -> None:
    task = TASKS["lab12.t5"]
    earned = [task.credit_for(code) for code in task.instance(None).data.codes(function)]
    assert min(credit.share if credit else 0 for credit in earned) == pytest.approx(share)
