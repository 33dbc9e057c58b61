"""Test that the page judges schedules for a puzzle, and times what can run so far, as the library does."""

from itertools import islice
from pathlib import Path
from random import Random

import node
import pytest
from page_runs import case_of, random_runs
from profiles import seeds
from test_validation_script import changed, random_texts

from hybridlab import HybridLabError, Op, Schedule, build, simulate
from hybridlab.course.puzzles import PUZZLES
from hybridlab.schedule.text import turn_text
from hybridlab.widgets import ScheduleEditor

pytestmark = pytest.mark.needs("node")

PROGRAM = """
import { judgedFor, reachedBy, timelineSoFar } from "./puzzle.js";
import { readLines } from "./validation.js";
const answer = (cases) => cases.map(([task, text]) => {
  const judgement = judgedFor(task, readLines(text));
  const timeline = timelineSoFar(task, judgement, {});
  const times = timeline?.ops.map(({ text: op, start, end, shade }) => [op, start, end, shade]) ?? [];
  const [fault] = judgement.faults;
  const reached = reachedBy(task, judgement, timeline);
  const [code, sentence] = [fault?.code ?? "", fault?.sentence ?? ""];
  return { reached, code, sentence, times, makespan: timeline?.makespan ?? null, stops: timeline?.stops ?? null };
});
"""


def variants(text: str, count: int, rng: Random) -> list[str]:
    """Return the text and others, each with one change to a random one of those before."""
    found = [text]
    for _ in range(count):
        found.append(changed(rng.choice(found), rng))
    return found


def texts_for(name: str) -> list[str]:
    puzzle, rng = PUZZLES[name], Random(name)  # noqa: S311  # the same in every run
    alone = [" ".join(f"{device}F{each} {device}B{each}" for each in range(puzzle.microbatches)) for device in range(puzzle.devices)]
    stuck = [alone[0], *(f"{device}F1 {order.replace(f' {device}F1', '')}" for device, order in enumerate(alone) if device)]
    schedules = [puzzle.start, "\n".join(stuck)]
    for other in ("gpipe", "1f1b", "zb-h1", "eager-1f1b"):
        sizes = {(puzzle.devices, puzzle.microbatches), (puzzle.devices, 2), (2, puzzle.microbatches)}
        schedules += [str(build(other, *size)) for size in sorted(sizes)]
    return ["", *(each for text in schedules for each in variants(text, 6, rng)), *islice(random_texts(80), 30)]


def test_the_page_finds_the_goals_and_the_faults_of_the_library(tmp_path: Path) -> None:
    cases = [(name, text) for name in PUZZLES for text in texts_for(name)]
    puzzles = {name: ScheduleEditor(puzzle).data for name, puzzle in PUZZLES.items()}
    answers = node.run(tmp_path, PROGRAM, [[puzzles[name], text] for name, text in cases])
    codes: dict[str, set[str]] = {name: set() for name in PUZZLES}
    for (name, text), told in zip(cases, answers, strict=True):
        judged = PUZZLES[name].judge(text)
        assert told["reached"] == list(judged.reached), (name, text)
        if judged.timeline is None:
            assert told["code"] == judged.code, (name, text)
            if not judged.sentence.startswith("schedule "):  # then it is the sentence of the first fault alone
                assert told["sentence"] == judged.sentence
        else:
            assert told["code"] == "", (name, text)
            assert told["makespan"] == pytest.approx(judged.timeline.makespan, rel=1e-12)
        codes[name].add(told["code"])
    wanted = {"", "another-size", "another-placement", "unknown-operation", "overlapped-pair", "deadlock", "doubled-operation"}
    assert all(found >= wanted for found in codes.values())


def test_what_can_run_so_far_runs_as_in_the_whole_schedule(tmp_path: Path) -> None:
    """If lines are cut, operations whose inputs are still there run at the times that they have in the whole schedule."""
    rng = Random(7)  # noqa: S311  # the same in every run
    cases, expected, lacked = [], [], []
    for schedule, costs in random_runs()[: len(seeds(500))]:
        if schedule.copies > 2:
            continue
        turns = [order[: rng.randint(0, len(order))] if rng.random() < 0.7 else order for order in schedule.turns]
        sizes = {"devices": schedule.devices, "microbatches": schedule.microbatches, "chunks": schedule.chunks}
        task = {**sizes, "costs": case_of(schedule, costs)["costs"], "puzzle": False, "split": True, "goals": [{"name": "complete"}]}
        cases.append([task, "\n".join(f"device {device}: {' '.join(map(turn_text, order))}" for device, order in enumerate(turns))])
        timeline = simulate(schedule, costs)
        row = {op: place for place, op in enumerate(schedule.ops)}
        ran = running(schedule, turns)
        expected.append([(str(op), timeline.start[row[op]], timeline.end[row[op]]) for op in ran])
        lacked.append([lacks(schedule, order, ran) for order in turns])
    answers = node.run(tmp_path, PROGRAM, cases)
    for right, stops, told, case in zip(expected, lacked, answers, cases, strict=True):
        assert [op for op, *_ in told["times"]] == [op for op, *_ in right], case
        assert all(stop in each for stop, each in zip(told["stops"] or [], stops, strict=bool(told["stops"]))), case
        for (_, *times), (_, start, end, _) in zip(right, told["times"], strict=True):
            assert [start, end] == pytest.approx(times, rel=1e-9, abs=1e-12)
    assert sum(0 < len(right) < sum(map(len, case[1].split())) for right, case in zip(expected, cases, strict=True)) > len(cases) / 3


def running(schedule: Schedule, turns: list[tuple[tuple[Op, ...], ...]]) -> list[Op]:
    """Return the operations that run if only these turns are there, device by device."""
    done: set[Op] = set()
    at = [0] * len(turns)
    while True:
        before = sum(at)
        for device, order in enumerate(turns):
            while at[device] < len(order) and all(done.issuperset(schedule.needs(op)) for op in order[at[device]]):
                done.update(order[at[device]])
                at[device] += 1
        if sum(at) == before:
            return [op for device, order in enumerate(turns) for turn in order[: at[device]] for op in turn]


def lacks(schedule: Schedule, order: tuple[tuple[Op, ...], ...], ran: list[Op]) -> set[str]:
    """Return the operations of which a device can wait at the end of what it has run, or {""} if it has run its whole order."""
    turn = next((turn for turn in order if not set(ran).issuperset(turn)), ())
    needed = {str(need) for op in turn for need in schedule.needs(op) if need not in ran}
    # a page does not know whether a backward that was cut from the text is a full one
    return needed | {need.replace("I", "B") for need in needed} if turn else {""}


def test_operations_that_do_not_belong_there_are_left_out_of_the_picture(tmp_path: Path) -> None:
    task = ScheduleEditor(devices=2, microbatches=1).data
    texts = ["0F0 0F1 2F0 0F0 0B0 7F0\n1F0 (1B0;1F3)\n2F0 2B0", "0F0 9W0\n", "9F9", "device"]
    told = node.run(tmp_path, PROGRAM, [[task, text] for text in texts])
    assert [[op for op, *_ in each["times"]] for each in told] == [["0F0", "0B0", "1F0", "1B0"], ["0F0"], [], []]
    assert [each["code"] for each in told] == ["another-size", "another-size", "another-size", "unknown-operation"]
    with pytest.raises(HybridLabError):
        Schedule.parse(texts[0])
