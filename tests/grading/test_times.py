"""Test the minutes of work until a task passed, and the file of times that a student keeps."""

from datetime import datetime
from pathlib import Path

import pytest
from cases import refusal

from hybridlab.course.grading.times import CheckedTask, minutes_until_passed, read_check_times, write_check_times


def at(clock: str, **states: str) -> list[CheckedTask]:
    return [CheckedTask(datetime.fromisoformat(f"2026-03-02T{clock}Z"), f"lab02.{task}", state) for task, state in states.items()]


def test_the_time_between_checks_counts_for_the_task_that_passes_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = at("09:00", t1="passed", t2="not tried", t3="not tried", t4="not tried", t5="not tried", t6="not tried")
    day = [
        *first,  # nobody knows when the work on t1 began
        *at("09:10", t1="passed", t2="not yet"),
        *at("09:25", t1="not yet", t2="passed"),  # an answer that passed was spoilt: its minutes stay
        *at("09:55", t1="passed", t2="passed", t3="passed", t4="passed"),  # 30 minutes are work, and the two share them
        *at("10:26", t5="not tried"),  # 31 minutes are a pause
        *at("10:20", t5="not tried"),  # the clock was set back
        *at("10:27", t5="passed"),
        *at("12:00", t6="passed"),  # nothing but a pause before it
    ]
    assert minutes_until_passed([]) == {}
    assert minutes_until_passed(first) == {"lab02.t1": None}
    found = {"lab02.t1": None, "lab02.t2": 25, "lab02.t3": 15, "lab02.t4": 15, "lab02.t5": 7, "lab02.t6": None}
    assert minutes_until_passed(day) == found
    path = tmp_path / "lab02_times.csv"
    write_check_times(path, day)
    assert read_check_times(path) == day
    good = path.read_bytes()
    path.write_bytes(b"\xef\xbb\xbf" + good.replace(b"\n", b"\r\n").rstrip())
    assert read_check_times(path) == day, "a spreadsheet has saved it"
    for damaged, line in (
        (b"", 1),
        (good[5:], 1),
        (good[:-3], 19),
        (good.replace(b"T09:10Z,lab02.t2", b"T09:10Z;lab02.t2"), 9),
        (good.replace(b"02T09:25Z,lab02.t1", b"32T09:25Z,lab02.t1"), 10),
        (good.replace(b"t5,passed", b"t5,\xff"), 18),
        (good.replace(b"t6,passed", b"t6,passed,"), 19),
    ):
        path.write_bytes(damaged)
        with refusal("damaged-times", f"line {line} of 'lab02_times.csv' is damaged", "move the file away"):
            read_check_times(path)
        assert path.read_bytes() == damaged
    path.write_bytes(good)
    monkeypatch.setattr(Path, "replace", lambda *arguments: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with refusal("not-writable", "lab02_times.csv: No space left on device; the times of this check are not kept"):
        write_check_times(path, first)
    assert path.read_bytes() == good
