"""Reports on the marks of a class: tables for the instructor, files for Gradescope, Classroom 50 and CI, and feedback for students."""

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from hybridlab.course.checking.checking import Feedback
from hybridlab.course.grading.escaping import cut, fenced, file_name, for_cell, for_log, for_markdown, no_command, visible
from hybridlab.course.grading.marks import Marks, TaskMark
from hybridlab.course.grading.records import write_whole
from hybridlab.errors import HybridLabError

HIDDEN_CASES = "Tasks with a function were tried on hidden cases that nobody saw before."
MOST_LINES = 60  # lines of feedback on one task; text of the student can be in them
# fields of Classroom 50 that only its runner knows, and the environment variables in which the runner has them
RUNNER = {
    "assignment_type": "ASSIGNMENT_TYPE",
    "submission": "SUBMISSION_TAG",
    "commit": "COMMIT_URL",
    "release": "RELEASE_URL",
    "review": "REVIEW_URL",
}


def write_reports(marks: Sequence[Marks], out: Path, *, runner: Mapping[str, str] | None = None) -> list[Path]:
    """Write all reports on the marks of a class, and return their paths. Each file is written whole or not at all.

    The files are ``grades.csv``, ``tasks.csv`` and ``junit.xml``, and for each student ``results/STUDENT.json`` for Gradescope,
    ``classroom/STUDENT.json`` for Classroom 50 and ``feedback/STUDENT.md``. None of them has a seed or a digest.

    Parameters
    ----------
    marks : sequence of Marks
        One for each student, in any order.
    out : Path
        The folder.
    runner : mapping, optional
        The environment in which Classroom 50 runs an autograder, ``os.environ``. Without it, the files for Classroom 50 lack the fields
        that only its runner knows.

    Raises
    ------
    HybridLabError
        ``student-twice`` or ``not-writable``.
    """
    sorted_marks = one_each(marks)
    written = [
        write_whole(out / "grades.csv", _csv(_grades(sorted_marks))),
        write_whole(out / "tasks.csv", _csv(_statistics(sorted_marks))),
        write_whole(out / "junit.xml", _junit(sorted_marks)),
    ]
    for each in sorted_marks:
        name = file_name(each.student)
        written += [
            write_whole(out / "results" / f"{name}.json", _json(_gradescope(each))),
            write_whole(out / "classroom" / f"{name}.json", _json(_classroom50(each, runner))),
            write_whole(out / "feedback" / f"{name}.md", _feedback(each)),
        ]
    return written


def one_each(marks: Iterable[Marks]) -> list[Marks]:
    """Return the marks in the order of their students.

    Raises
    ------
    HybridLabError
        ``student-twice`` if two of them are of one student.
    """
    found: dict[str, Marks] = {}
    for each in marks:
        other = found.setdefault(each.student, each)
        if other is not each:
            files = f"{for_log(other.file)} and {for_log(each.file)}"
            raise HybridLabError(f"{files} are both from {for_log(each.student)}: keep one of them", "student-twice")
    return [found[student] for student in sorted(found)]


def short_number(value: float) -> float:
    """Return a number with at most two decimals, as an int if it has none.

    >>> short_number(2.0), short_number(2 / 3)
    (2, 0.67)
    """
    rounded = round(value, 2)
    return int(rounded) if rounded == int(rounded) else rounded


def verdict(task: TaskMark) -> str:
    """Return in words what a task has earned, such as "passed", "not yet" or "partly: 3 of 6 points"."""
    if task.points >= task.out_of:
        return "passed"
    return f"partly: {short_number(task.points)} of {short_number(task.out_of)} points" if task.points > 0 else "not yet"


def _sentences(task: TaskMark) -> list[str]:
    """Return the messages and remarks of a task as :func:`hybridlab.check` lays them out, without its first line."""
    # the student sees the same layout as in a notebook, so Feedback prints it
    lines = [line for text in (*task.messages, *task.remarks) for line in visible(text).split("\n")]
    lines = [cut(line) for line in lines[:MOST_LINES]] + ["..."] * (len(lines) > MOST_LINES)
    return [no_command(line) for line in repr(Feedback(False, tuple(lines))).split("\n")[1:]]


def _remarks(marks: Marks) -> list[str]:
    return [for_log(text) for text in marks.remarks]


def _points(marks: Marks) -> str:
    return f"{short_number(marks.points)} out of {short_number(marks.out_of)} points"


def _ran_hidden_cases(marks: Marks) -> bool:
    """Whether a task was tried on hidden cases."""
    return any(task.seed is not None for task in marks.tasks)


def _csv(rows: Iterable[Sequence[str | float]]) -> str:
    text = StringIO()
    # every cell goes through for_cell: a name or a remark can come from a student
    csv.writer(text, lineterminator="\n").writerows([for_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=1) + "\n"


def _task_keys(marks: Iterable[Marks]) -> list[str]:
    return list(dict.fromkeys(task.key for each in marks for task in each.tasks))


def _grades(marks: Sequence[Marks]) -> Iterator[list[str | float]]:
    """Yield a row for each student."""
    keys = _task_keys(marks)
    yield ["student", "lab", "points", "out of", "percent", *keys, "needs a person", "remarks"]
    for each in marks:
        earned = {task.key: short_number(task.points) for task in each.tasks}
        percent = round(100 * each.points / each.out_of, 1) if each.out_of else ""
        remarks = _remarks(each) + [for_log(f"{task.key}: {text}") for task in each.tasks for text in task.remarks]
        total = [short_number(each.points), short_number(each.out_of), percent]
        yield [each.student, each.lab, *total, *(earned.get(key, "") for key in keys), for_log(each.needs_person), "; ".join(remarks)]


def _statistics(marks: Sequence[Marks]) -> Iterator[list[str | float]]:
    """Yield a row for each task. Its share is the mean of the points that students have earned, divided by those of a right answer."""
    yield ["task", "title", "out of", "students", "passed", "partly", "nothing handed in", "mean points", "share", "most frequent mistakes"]
    for key in _task_keys(marks):
        tasks = [task for each in marks for task in each.tasks if task.key == key]
        passed = sum(task.points >= task.out_of for task in tasks)
        partly = sum(0 < task.points < task.out_of for task in tasks)
        codes = Counter(task.code for task in tasks)
        # the most frequent first, and equal counts by their codes
        mistakes = sorted((-count, code) for code, count in codes.items() if code not in {"passed", "nothing-handed-in"})
        mean, out_of = sum(task.points for task in tasks) / len(tasks), tasks[0].out_of
        counts = [len(tasks), passed, partly, codes["nothing-handed-in"]]
        share = short_number(mean / out_of) if out_of else ""
        frequent = ", ".join(f"{code}: {-count}" for count, code in mistakes[:3])
        yield [key, tasks[0].title, short_number(out_of), *counts, short_number(mean), share, frequent]


def _junit(marks: Sequence[Marks]) -> bytes:
    """Return the marks as JUnit XML, which CI systems show: a suite for each student, a failure for each task that lacks points."""
    suites = ElementTree.Element("testsuites")
    for each in marks:
        failures = sum(task.points < task.out_of for task in each.tasks)
        counts = {"tests": str(len(each.tasks)), "failures": str(failures)}
        suite = ElementTree.SubElement(suites, "testsuite", {"name": for_log(each.student), **counts})
        for task in each.tasks:
            case = ElementTree.SubElement(suite, "testcase", classname=each.lab, name=for_log(f"{task.key}: {task.title}"))
            if task.points < task.out_of:
                failure = ElementTree.SubElement(case, "failure", type=for_log(task.code), message=verdict(task))
                failure.text = "\n".join(_sentences(task))
    ElementTree.indent(suites)
    document: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _gradescope(marks: Marks) -> dict[str, Any]:
    """Return the results of a student as Gradescope reads them: https://gradescope-autograders.readthedocs.io/en/latest/specs."""
    lines = [_points(marks), *[HIDDEN_CASES] * _ran_hidden_cases(marks), *_remarks(marks)]
    return {
        "score": short_number(marks.points),
        "output": "\n".join(lines),
        "output_format": "text",
        "visibility": "visible",
        "tests": [
            {
                "name": for_log(f"{task.key}: {task.title}"),
                "score": short_number(task.points),
                "max_score": short_number(task.out_of),
                "status": "passed" if task.points >= task.out_of else "failed",
                "output": "\n".join([verdict(task), *_sentences(task)]),
                "output_format": "text",
            }
            for task in marks.tasks
        ],
    }


def _classroom50(marks: Marks, runner: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the result of a student as Classroom 50 reads it: github.com/foundation50/classroom50, wiki page Advanced-Autograding.

    Its points are whole numbers, so they are rounded down.
    """
    known = {"classroom": for_log(marks.course), "assignment": for_log(marks.lab), "owner": for_log(marks.student)}
    if runner is not None:
        # the runner knows better whose work it runs
        known = {field: runner.get(field.upper(), ours) for field, ours in known.items()}
        known |= {field: runner[variable] for field, variable in RUNNER.items() if variable in runner}
        known["datetime"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    tests = [
        {
            "test-name": for_log(f"{task.key}: {task.title}"),
            "passed": task.points >= task.out_of,
            "score": int(task.points),
            "max-score": int(task.out_of),
            "output": "\n".join([verdict(task), *_sentences(task)]),
        }
        for task in marks.tasks
    ]
    totals = {"score": sum(int(task.points) for task in marks.tasks), "max-score": sum(int(task.out_of) for task in marks.tasks)}
    return {"schema": "classroom50/result/v1", **known, **totals, "tests": tests}


def _feedback(marks: Marks) -> str:
    """Return the feedback for a student in Markdown. Text that the student may have written stands in blocks where signs mean nothing."""
    lines = [
        f"# {for_markdown(marks.lab)}: {_points(marks)}",
        "",
        f"Student: {for_markdown(marks.student)}, file: {for_markdown(marks.file)}",
        "",
    ]
    lines += [HIDDEN_CASES, ""] * _ran_hidden_cases(marks)
    lines += [*fenced(_remarks(marks)), ""] * bool(marks.remarks)
    for task in marks.tasks:
        lines += [f"## {for_markdown(task.title)}", "", *fenced([for_log(f"{task.key}: {verdict(task)}"), *_sentences(task)]), ""]
    return "\n".join(lines)
