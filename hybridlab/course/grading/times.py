"""When a student has checked which task, kept in a file on the student's own machine, and the minutes of work until each task passed."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from statistics import median

from hybridlab.checks import short_repr
from hybridlab.course.grading.labs import reference
from hybridlab.course.grading.marks import TaskMark
from hybridlab.course.grading.notebook import bytes_of_a_file, cell_text
from hybridlab.course.grading.records import write_whole
from hybridlab.course.grading.reports import short_number
from hybridlab.errors import HybridLabError

HEADER = "time,task,state"
PASSED, NOT_YET, NOT_TRIED = "passed", "not yet", "not tried"
LINE = re.compile(rf"([0-9-]{{10}}T[0-9:]{{5}}Z),(lab[0-9]{{2}}\.t[0-9]+),({PASSED}|{NOT_YET}|{NOT_TRIED})")
LONGEST_WORK = 30  # minutes between two checks; more are a pause
STATED = re.compile(r"(?:It takes about|the optional parts take another)\s+([0-9]+)")
RULE = f"""\
the time between two checks counts for the task that passes next; tasks that pass in one check share it equally
more than {LONGEST_WORK} minutes without a check count as nothing, and - means no minutes: check when you begin, and after each pause"""


@dataclass(frozen=True)
class CheckedTask:
    """What a check has said about a task: ``"passed"``, ``"not yet"`` or ``"not tried"``. The time is in UTC, to the minute."""

    time: datetime
    task: str
    state: str

    def __str__(self) -> str:
        return f"{self.time:%Y-%m-%dT%H:%MZ},{self.task},{self.state}"


def checked(marks: Iterable[TaskMark], now: datetime) -> list[CheckedTask]:
    """Return the rows of a check at the time ``now`` in UTC."""
    states = {"passed": PASSED, "nothing-handed-in": NOT_TRIED}
    return [CheckedTask(now.replace(second=0, microsecond=0), mark.key, states.get(mark.code, NOT_YET)) for mark in marks]


def read_check_times(path: Path) -> list[CheckedTask]:
    """Return the rows of a file of times.

    Raises
    ------
    HybridLabError
        ``damaged-times`` for a line that is no row, or a code of :func:`hybridlab.course.grading.notebook.bytes_of_a_file`.
    """
    header, *lines = bytes_of_a_file(path).decode("utf-8-sig", "replace").splitlines() or [""]
    rows: list[CheckedTask] = []
    for number, line in enumerate(lines if header == HEADER else (), 2):
        found = LINE.fullmatch(line)
        with suppress(ValueError):  # of a date that does not exist
            rows += [CheckedTask(datetime.fromisoformat(found[1]), found[2], found[3])] if found else []
        if len(rows) < number - 1:
            raise _damaged(path, number)
    if header != HEADER:
        raise _damaged(path, 1)
    return rows


def _damaged(path: Path, number: int) -> HybridLabError:
    right = f"the first line is {HEADER}, and the others are like 2026-03-02T09:05Z,lab02.t1,{PASSED}"
    place = f"line {number} of {short_repr(path.name)} is damaged"
    return HybridLabError(f"{place}: {right}; the file did not change: mend the line, or move the file away", "damaged-times")


def write_check_times(path: Path, rows: Iterable[CheckedTask]) -> None:
    """Write a file of times. After an error, the old file is there.

    Raises
    ------
    HybridLabError
        ``not-writable``: the file cannot be written.
    """
    write_whole(path, "\n".join([HEADER, *map(str, rows)]) + "\n", hint="the times of this check are not kept")


def minutes_until_passed(rows: Iterable[CheckedTask]) -> dict[str, float | None]:
    """Return the minutes of work until each task passed; None for a task that passed without any, as in the first check.

    The time between two checks counts for the task that passes next. Tasks that pass in one check share it equally. More than
    ``LONGEST_WORK`` minutes between two checks count as nothing. A task that has passed stays passed.

    >>> begin, end = datetime(2026, 3, 2, 9, 0), datetime(2026, 3, 2, 9, 12)
    >>> rows = [CheckedTask(begin, "lab02.t1", "not tried"), CheckedTask(end, "lab02.t1", "passed")]
    >>> minutes_until_passed(rows)
    {'lab02.t1': 12.0}
    """
    found: dict[str, float | None] = {}
    worked, before = 0.0, None
    for time, check in groupby(rows, lambda row: row.time):
        pause = (time - before) / timedelta(minutes=1) if before else 0.0
        worked += pause if 0 < pause <= LONGEST_WORK else 0.0  # less than 0: the clock was set back
        new = {row.task for row in check if row.state == PASSED} - set(found)
        if new:
            found |= dict.fromkeys(sorted(new), worked / len(new) or None)
            worked = 0.0
        before = time
    return found


def median_minutes(paths: Iterable[Path]) -> dict[str, tuple[float, int]]:
    """Return for each task the median of the minutes in files of times, and the number of files that have minutes for the task.

    Raises
    ------
    HybridLabError
        A code of :func:`read_check_times`; the sentence names the file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> begin = CheckedTask(datetime(2026, 3, 2, 9, 0), "lab02.t1", "not tried")
    >>> with TemporaryDirectory() as folder:
    ...     for minute in (10, 16):
    ...         passed = CheckedTask(datetime(2026, 3, 2, 9, minute), "lab02.t1", "passed")
    ...         write_check_times(Path(folder, f"{minute}.csv"), [begin, passed])
    ...     median_minutes(Path(folder).glob("*.csv"))
    {'lab02.t1': (13.0, 2)}
    """
    of_tasks = defaultdict[str, list[float]](list)
    for path in paths:
        for task, minutes in minutes_until_passed(read_check_times(path)).items():
            if minutes is not None:
                of_tasks[task].append(minutes)
    return {task: (median(each), len(each)) for task, each in sorted(of_tasks.items())}


def times_report(rows: Iterable[CheckedTask], marks: Sequence[TaskMark], lab: str) -> list[str]:
    """Return lines of text: the minutes of each task of a lab, and their sums beside the minutes that the lab states in its first cell."""
    found = minutes_until_passed(rows)
    lines = ["minutes of work until each task passed:"]
    for mark in marks:
        optional = " (optional)" if mark.bonus else ""
        lines.append(f"  {mark.key}{optional}: {_shown(found[mark.key]) if mark.key in found else NOT_YET}")
    first = json.loads(reference(lab).read_text(encoding="utf-8"))["cells"][0]
    for bonus, stated in enumerate(STATED.findall(cell_text(first))):  # the optional parts come second
        of_kind = [mark.key for mark in marks if mark.bonus == bool(bonus)]
        if of_kind:
            what = "optional tasks" if bonus else "together"
            lines.append(f"  {what}: {_shown(sum(found.get(key) or 0 for key in of_kind))}; the lab says {stated}")
    return [*lines, *RULE.splitlines()]


def _shown(minutes: float | None) -> str:
    return f"{short_number(minutes)}" if minutes else "-"
