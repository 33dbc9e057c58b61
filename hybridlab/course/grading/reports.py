"""Write reports on the marks of a class: tables for the instructor; files for Gradescope, Classroom 50 and CI; feedback for students."""

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
MOST_LINES = 60  # the most lines of feedback on one task; feedback can contain long text from the student
# fields of a result for Classroom 50, and the environment variables of its runner that contain their values
RUNNER = {
    "assignment_type": "ASSIGNMENT_TYPE",
    "submission": "SUBMISSION_TAG",
    "commit": "COMMIT_URL",
    "release": "RELEASE_URL",
    "review": "REVIEW_URL",
}


def write_reports(marks: Sequence[Marks], out: Path, *, runner: Mapping[str, str] | None = None) -> list[Path]:
    """Write all reports on the marks of a class, and return the paths of the files.

    For the class, the files are ``grades.csv``, ``tasks.csv`` and ``junit.xml``. For each student, they are ``results/STUDENT.json`` for
    Gradescope, ``classroom/STUDENT.json`` for Classroom 50, and ``feedback/STUDENT.md``. No file contains a seed or a digest.

    Parameters
    ----------
    marks : sequence of Marks
        The marks of one lab, one for each student, in any order.
    out : Path
        The folder.
    runner : mapping, optional
        The environment variables of the runner of Classroom 50, such as ``os.environ``. Without them, the files for Classroom 50 lack
        the fields that only the runner knows.

    Raises
    ------
    HybridLabError
        ``student-twice``: two marks belong to one student. ``not-writable``: a file cannot be written.
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
    """Return the marks, sorted by the names of the students.

    Raises
    ------
    HybridLabError
        ``student-twice``: two marks belong to one student.
    """
    found: dict[str, Marks] = {}
    for each in marks:
        other = found.setdefault(each.student, each)
        if other is not each:
            files = f"{for_log(other.file)} and {for_log(each.file)}"
            raise HybridLabError(f"{files} are both from {for_log(each.student)}: keep one of them", "student-twice")
    return [found[student] for student in sorted(found)]


def short_number(value: float) -> float:
    """Return a number, rounded to two decimals; a whole number becomes an int.

    >>> short_number(2.0), short_number(2 / 3)
    (2, 0.67)
    """
    rounded = round(value, 2)
    return int(rounded) if rounded == int(rounded) else rounded


def verdict(task: TaskMark) -> str:
    """Return the result of a task in words: "passed", "not yet", or partial credit such as "partly: 3 of 6 points"."""
    if task.points >= task.out_of:
        return "passed"
    return f"partly: {short_number(task.points)} of {short_number(task.out_of)} points" if task.points > 0 else "not yet"


def _sentences(task: TaskMark) -> list[str]:
    """Return the messages and remarks of a task as lines of text, in the layout of :func:`hybridlab.check` without its first line."""
    # Feedback makes the layout, so that it is the same in reports and in notebooks
    lines = [line for text in (*task.messages, *task.remarks) for line in visible(text).split("\n")]
    lines = [cut(line) for line in lines[:MOST_LINES]] + ["..."] * (len(lines) > MOST_LINES)
    return [no_command(line) for line in repr(Feedback(False, tuple(lines))).split("\n")[1:]]


def _remarks(marks: Marks) -> list[str]:
    return [for_log(text) for text in marks.remarks]


def _points(marks: Marks) -> str:
    bonus = f", {short_number(marks.bonus)} of them bonus points" if marks.bonus else ""
    return f"{short_number(marks.points)} out of {short_number(marks.out_of)} points{bonus}"


def _name(task: TaskMark) -> str:
    """Return the key and the title of a task, and whether its points are bonus points."""
    return for_log(f"{task.key}: {task.title}") + " (bonus)" * task.bonus


def _ran_hidden_cases(marks: Marks) -> bool:
    """Return whether a task of the lab was tested on hidden cases."""
    return any(task.seed is not None for task in marks.tasks)


def _csv(rows: Iterable[Sequence[str | float]]) -> str:
    text = StringIO()
    # for_cell makes each cell harmless, because a name or a remark can contain text from a student
    csv.writer(text, lineterminator="\n").writerows([for_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=1) + "\n"


def _task_keys(marks: Iterable[Marks]) -> list[str]:
    return list(dict.fromkeys(task.key for each in marks for task in each.tasks))


def _grades(marks: Sequence[Marks]) -> Iterator[list[str | float]]:
    """Yield the rows of ``grades.csv``: the header, and a row for each student."""
    keys = _task_keys(marks)
    yield ["student", "lab", "points", "out of", "percent", "of them bonus", *keys, "needs a person", "remarks"]
    for each in marks:
        earned = {task.key: short_number(task.points) for task in each.tasks}
        percent = round(100 * each.points / each.out_of, 1) if each.out_of else ""
        remarks = _remarks(each) + [for_log(f"{task.key}: {text}") for task in each.tasks for text in task.remarks]
        total = [short_number(each.points), short_number(each.out_of), percent, short_number(each.bonus)]
        yield [each.student, each.lab, *total, *(earned.get(key, "") for key in keys), for_log(each.needs_person), "; ".join(remarks)]


def _statistics(marks: Sequence[Marks]) -> Iterator[list[str | float]]:
    """Yield the rows of ``tasks.csv``: the header, and a row for each task.

    The share of a task is the mean of the students' points, divided by the points of a right answer.
    """
    counted = ["students", "passed", "partly", "nothing handed in"]
    yield ["task", "title", "out of", "bonus", *counted, "mean points", "share", "most frequent mistakes"]
    for key in _task_keys(marks):
        tasks = [task for each in marks for task in each.tasks if task.key == key]
        passed = sum(task.points >= task.out_of for task in tasks)
        partly = sum(0 < task.points < task.out_of for task in tasks)
        codes = Counter(task.code for task in tasks)
        # the most frequent mistakes first; mistakes with equal counts are in alphabetical order
        mistakes = sorted((-count, code) for code, count in codes.items() if code not in {"passed", "nothing-handed-in"})
        mean, out_of = sum(task.points for task in tasks) / len(tasks), tasks[0].out_of
        counts = [len(tasks), passed, partly, codes["nothing-handed-in"]]
        share = short_number(mean / out_of) if out_of else ""
        frequent = ", ".join(f"{code}: {-count}" for count, code in mistakes[:3])
        bonus = "yes" if tasks[0].bonus else "no"
        yield [key, tasks[0].title, short_number(out_of), bonus, *counts, short_number(mean), share, frequent]


def _junit(marks: Sequence[Marks]) -> bytes:
    """Return the marks as JUnit XML for CI systems: a test suite for each student, a failed test for each task without full points.

    An optional task without full points is a skipped test, because a student does not need to answer it.
    """
    suites = ElementTree.Element("testsuites")
    for each in marks:
        missed = Counter("skipped" if task.bonus else "failures" for task in each.tasks if task.points < task.out_of)
        counts = {"tests": str(len(each.tasks)), **{kind: str(missed[kind]) for kind in ("failures", "skipped")}}
        suite = ElementTree.SubElement(suites, "testsuite", {"name": for_log(each.student), **counts})
        for task in each.tasks:
            case = ElementTree.SubElement(suite, "testcase", classname=each.lab, name=_name(task))
            if task.points < task.out_of and task.bonus:
                ElementTree.SubElement(case, "skipped", message=verdict(task))
            elif task.points < task.out_of:
                failure = ElementTree.SubElement(case, "failure", type=for_log(task.code), message=verdict(task))
                failure.text = "\n".join(_sentences(task))
    ElementTree.indent(suites)
    document: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _gradescope(marks: Marks) -> dict[str, Any]:
    """Return the results of a student in the form of Gradescope: https://gradescope-autograders.readthedocs.io/en/latest/specs."""
    lines = [_points(marks), *[HIDDEN_CASES] * _ran_hidden_cases(marks), *_remarks(marks)]
    return {
        "score": short_number(marks.points),
        "output": "\n".join(lines),
        "output_format": "text",
        "visibility": "visible",
        "tests": [
            {
                "name": _name(task),
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
    """Return the result of a student in the form of Classroom 50: github.com/foundation50/classroom50, wiki page Advanced-Autograding.

    Classroom 50 has whole points only, so points are rounded down. There the largest score is the sum of those of the tests, and no score
    can be larger. So the largest score of an optional task is the one that the student has: without bonus points, the student loses
    nothing.
    """
    known = {"classroom": for_log(marks.course), "assignment": for_log(marks.lab), "owner": for_log(marks.student)}
    if runner is not None:
        # values of the runner replace those of the marks, because the runner knows the student's account
        known = {field: runner.get(field.upper(), ours) for field, ours in known.items()}
        known |= {field: runner[variable] for field, variable in RUNNER.items() if variable in runner}
        known["datetime"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    tests: list[dict[str, Any]] = [
        {
            "test-name": _name(task),
            "passed": task.points >= task.out_of,
            "score": int(task.points),
            "max-score": int(task.points if task.bonus else task.out_of),
            "output": "\n".join([verdict(task), *_sentences(task)]),
        }
        for task in marks.tasks
    ]
    totals = {name: sum(test[name] for test in tests) for name in ("score", "max-score")}
    return {"schema": "classroom50/result/v1", **known, **totals, "tests": tests}


def _feedback(marks: Marks) -> str:
    """Return the feedback for a student in Markdown. Text from the student stands in code blocks, where it cannot act as Markdown."""
    lines = [
        f"# {for_markdown(marks.lab)}: {_points(marks)}",
        "",
        f"Student: {for_markdown(marks.student)}, file: {for_markdown(marks.file)}",
        "",
    ]
    lines += [HIDDEN_CASES, ""] * _ran_hidden_cases(marks)
    lines += [*fenced(_remarks(marks)), ""] * bool(marks.remarks)
    for task in marks.tasks:
        title = for_markdown(task.title) + " (bonus)" * task.bonus
        lines += [f"## {title}", "", *fenced([for_log(f"{task.key}: {verdict(task)}"), *_sentences(task)]), ""]
    return "\n".join(lines)
