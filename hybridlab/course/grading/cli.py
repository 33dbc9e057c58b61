"""Commands of ``hybridlab``: start, check, reveal and pack for students; release, grade and doctor for instructors."""

import os
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from hybridlab.checks import counted
from hybridlab.course.checking.checking import Feedback
from hybridlab.course.checking.student import COURSE
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.canvas import fill_canvas
from hybridlab.course.grading.cases import secret_in
from hybridlab.course.grading.command_line import (
    DONE,
    FAILED,
    INTERRUPTED,
    NEEDS_PERSON,
    NO_SANDBOX,
    json_option,
    main,
    print_results,
    progress_on_terminal,
    report_errors,
    with_examples,
)
from hybridlab.course.grading.copies import pack, reveal, start
from hybridlab.course.grading.doctor import examine, require_sandbox
from hybridlab.course.grading.escaping import for_log
from hybridlab.course.grading.grade import Assignment, grade_all, marked_alike, with_seeds
from hybridlab.course.grading.labs import lab_name, reference
from hybridlab.course.grading.launch import SANDBOXES, Launcher, launcher
from hybridlab.course.grading.marking import mark
from hybridlab.course.grading.marks import Marks, TaskMark
from hybridlab.course.grading.notebook import Submission, read_submission
from hybridlab.course.grading.records import read_records, write_whole
from hybridlab.course.grading.reports import short_number, write_reports
from hybridlab.course.grading.reveal import revealed
from hybridlab.course.grading.specs import spec_of
from hybridlab.course.grading.submissions import find_submissions
from hybridlab.course.grading.times import checked, read_check_times, times_report, write_check_times
from hybridlab.course.tasks import TASKS, Student
from hybridlab.errors import HybridLabError

course_option = click.option("--course", default=COURSE, show_default=True, help="The name of the course. Students' tasks depend on it.")
sandbox_option = click.option(
    "--sandbox",
    type=click.Choice([name for name in SANDBOXES if name != "none"]),
    default="bubblewrap",
    show_default=True,
    help="The program that protects this machine from the code of students.",
)


@main.command("start", epilog=with_examples("start lab02", "start lab02 --as ana --to labs"))
@click.argument("lab")
@click.option("--as", "student", default="", help="Your name in the course. It determines your own sizes and changes of tasks ('twists').")
@click.option("--to", "folder", default=".", type=click.Path(path_type=Path), help="The folder for your copy.")
@course_option
@report_errors
def start_lab(lab: str, student: str, folder: Path, course: str) -> None:
    """Make your copy of LAB, such as lab02. The command never overwrites a file."""
    path = start(lab, folder, student, course)
    click.echo(f"{path}: open it with jupyter lab, and answer its tasks")
    click.echo(f"hybridlab check {path.name} tries your answers; hybridlab pack {path.name} makes the file that you hand in")


@main.command("check", epilog=with_examples("check lab02.ipynb", "check lab02.ipynb --times", "check lab02.ipynb --json"))
@click.argument("notebook", type=click.Path(path_type=Path))
@click.option("--lab", default="", help="The lab, if the notebook does not name its lab.")
@click.option(
    "--times", is_flag=True, help="Keep the times of checks in a file beside the notebook. Print the minutes until a task passed."
)
@json_option
@report_errors
def check_notebook(notebook: Path, lab: str, times: bool, as_json: bool) -> int:
    """Check all answers in NOTEBOOK on public test cases, as the grader does. The command runs your code without a sandbox."""
    now = utc_now()  # before the check, because the time of the check itself is no work
    submission = read_submission(notebook)
    spec = spec_of(reference(lab or submission.lab or notebook.name))
    kept = notebook.with_name(f"{notebook.stem}_times.csv")
    rows = read_check_times(kept) if times and kept.exists() else []
    student = Student(submission.student, submission.course or COURSE) if submission.student else None
    marks: list[TaskMark] = []
    # no sandbox is needed, because students run their own code here
    with launcher("none") as local, progress_on_terminal(len(spec.tasks), "tasks") as advance:
        budget = Budget(local.limits)
        for task in mark(submission.cells, spec, student, local.open, budget, lambda key: None):
            marks.append(task)
            advance(task.key)
    left = [task.key for task in marks if task.points < task.out_of and not task.bonus]
    points, bonus = sum(task.points for task in marks), sum(task.points for task in marks if task.bonus)
    if as_json:
        whose = student.name if student else None
        results = {"lab": spec.lab, "student": whose, "points": points, "bonus": bonus, "out_of": spec.out_of, "not_right_yet": left}
        print_results(results | {"tasks": [_as_results(task) for task in marks]}, "", as_json)
    else:
        click.echo(f"{spec.lab}, {f'for {student.name}' if student else 'with the sizes in the text'}, as it was saved last")
        for task in marks:
            _show(task)
        of_them = f", {short_number(bonus)} of them bonus points," if bonus else ""
        click.echo(f"{short_number(points)} of {spec.out_of} points{of_them} on public cases; hidden cases run at grading")
        click.echo(budget.limits.promise)
        if budget.near:
            click.echo(budget.near)
        if left:
            click.echo(f"not right yet: {', '.join(left)}; change them, save the notebook, and check again")
        else:
            click.echo(f"hybridlab pack {for_log(notebook.name)} makes the file that you hand in")
    if times:
        rows += checked(marks, now)
        write_check_times(kept, rows)
        click.echo("\n".join(times_report(rows, marks, spec.lab)), err=as_json)
        click.echo(f"{for_log(kept.name)} stays on this machine; you can hand it in if your course asks for it", err=as_json)
    return FAILED if left else DONE


def utc_now() -> datetime:
    """Return the time. Tests replace this function."""
    return datetime.now(UTC)


@main.command("reveal", epilog=with_examples("reveal lab11.t4"))
@click.argument("task")
@click.option("--notebook", type=click.Path(path_type=Path), help="Your copy, if it is not lab11.ipynb or the like.")
@report_errors
def reveal_cells(task: str, notebook: Path | None) -> None:
    """Show what your copy leaves out about TASK, such as lab11.t4, when your answer passes."""
    revealed(task)  # refuses an unknown task before the check
    path = notebook or Path(f"{task[:5]}.ipynb")
    submission, spec = read_submission(path), replace(spec_of(reference(task[:5])), tasks=(TASKS[task],))
    student = Student(submission.student, submission.course or COURSE) if submission.student else None
    with launcher("none") as local:
        (marked,) = mark(submission.cells, spec, student, local.open, Budget(local.limits), lambda key: None)
    if marked.code != "passed":
        raise HybridLabError(f"{task} has not passed yet: `hybridlab check {path.name}` says why", "not-passed")
    text, file = reveal(task, path.parent)
    click.echo(f"{text}\n\n{file}: the same as a notebook")


@main.command("pack", epilog=with_examples("pack lab02.ipynb", "pack lab02.ipynb --to handed_in"))
@click.argument("notebook", type=click.Path(path_type=Path))
@click.option("--to", "folder", default=None, type=click.Path(path_type=Path), help="The folder for the new file.")
@report_errors
def pack_notebook(notebook: Path, folder: Path | None) -> None:
    """Make the small file that you hand in: a copy of NOTEBOOK without outputs."""
    path = pack(notebook, folder)
    click.echo(f"{path}: {path.stat().st_size / 1000:,.0f} kB, ready to hand in")


@main.command("release", epilog=with_examples("release lab02 --out released", "release lab02 --out released --course autumn"))
@click.argument("lab")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder for the students' copy and its description.")
@course_option
@sandbox_option
@report_errors
def release_lab(lab: str, out: Path, course: str, sandbox: str) -> None:
    """Release LAB to a class if the grader marks known submissions correctly.

    The worked solutions must get all points. An empty copy must get no points. Known wrong answers and copied solutions must not pass.
    """
    from hybridlab.course.grading.release import release

    with launcher(sandbox) as workers:
        require_sandbox(workers)
        for gate in release(lab_name(lab), out, workers, course, lambda what: click.echo(f"trying {what}", err=True)):
            click.echo(f"{gate.name}: {gate.tried} tried")
    click.echo(f"{out / (lab_name(lab) + '.ipynb')}: released")


@main.command(
    "grade",
    epilog=with_examples(
        "grade submissions/ --lab lab02 --out grades/",
        "grade submissions/ --lab lab02 --out grades/ --canvas gradebook.csv",
        "grade --explain submissions/lab02_ana.ipynb --out grades/",
    ),
)
@click.argument("submissions", type=click.Path(path_type=Path), required=False)
@click.option("--lab", default="", help="The lab, such as lab02.")
@click.option("--out", default="grades", show_default=True, type=click.Path(path_type=Path), help="The folder for marks and feedback.")
@click.option("--run", default="final", show_default=True, help="A label of this run. Each label has its own hidden test cases.")
@click.option("--common", is_flag=True, help="All students have the same tasks: those in the text of the lab.")
@click.option("--canvas", type=click.Path(path_type=Path), help="A gradebook from Canvas. A copy with the points is written.")
@click.option("--column", default="", help="The column of the gradebook, if its name does not contain the lab.")
@click.option("--jobs", default=os.cpu_count() or 1, show_default="one per core", type=click.IntRange(1), help="Parallel processes.")
@click.option("--explain", type=click.Path(path_type=Path), help="Grade this one submission again with the seeds in the records in --out.")
@course_option
@sandbox_option
@json_option
@report_errors
def grade_class(
    submissions: Path | None,
    lab: str,
    out: Path,
    run: str,
    common: bool,
    canvas: Path | None,
    column: str,
    jobs: int,
    explain: Path | None,
    course: str,
    sandbox: str,
    as_json: bool,
) -> int:
    """Mark all notebooks of a lab in the folder SUBMISSIONS. After an interruption, run the same command to mark the rest.

    Put the secret of the course into the environment variable HYBRIDLAB_SECRET. Hidden test cases are drawn from this secret.
    """
    if explain is not None:
        return _explain(explain, out, sandbox)
    if submissions is None or not lab:
        raise click.UsageError("give the folder of submissions and --lab, such as: hybridlab grade submissions/ --lab lab02 --out grades/")
    assignment = Assignment(lab_name(lab), secret_in(os.environ), course, run, common)
    found = find_submissions(submissions, assignment.lab)
    marks: list[Marks] = []
    interrupted = False
    try:
        with launcher(sandbox) as workers:
            require_sandbox(workers)
            write_whole(out / ".writable", "").unlink()  # raises now if the folder is not writable, and not after an hour of grading
            graded = grade_all(found, assignment, workers, out / "records", jobs=jobs)
            with closing(graded), progress_on_terminal(len(found), "submissions") as advance:
                for each in graded:
                    marks.append(each)
                    advance(each.student)
            marks = marked_alike(marks, found, assignment.lab)
    except KeyboardInterrupt:
        interrupted = True
    if marks or not interrupted:
        write_reports(marks, out, runner=os.environ)
    if interrupted:
        on_record = f"{len(marks)} of {counted(len(found), 'submission')}"
        click.echo(f"interrupted: {on_record} graded, on record and in the reports; the same command grades the others", err=True)
        return INTERRUPTED
    _print_summary(marks, out, as_json)
    if canvas is not None:
        filled = fill_canvas(canvas, marks, out, column=column)
        click.echo(f"{filled.path}: {counted(len(filled.filled), 'student')} in the column {for_log(filled.column)}", err=as_json)
        for remark in filled.remarks:
            click.echo(for_log(remark), err=as_json)
    return NEEDS_PERSON if any(each.needs_person for each in marks) else DONE


@main.command("doctor", epilog=with_examples("doctor", "doctor --sandbox landlock --json"))
@sandbox_option
@json_option
@report_errors
def examine_sandbox(sandbox: str, as_json: bool) -> int:
    """Print whether this machine has a working sandbox, and what the sandbox prevents."""
    with launcher(sandbox) as workers:
        findings = []
        for finding in examine(workers):
            findings.append(finding)
            if as_json:
                continue
            known = " (Landlock leaves this open)" if finding.left_open else ""
            click.echo(f"{'yes' if finding.holds else 'no ' if known else 'NO '}  {finding.name}{known}")
            if finding.sentence:
                click.echo(finding.sentence)
    sound = all(finding.holds or finding.left_open for finding in findings)
    results = [{"name": each.name, "holds": each.holds, "left_open": each.left_open, "sentence": each.sentence} for each in findings]
    print_results({"can_grade": sound, "findings": results}, f"{'work' if sound else 'nothing'} can be graded here", as_json)
    return DONE if sound else NO_SANDBOX


def _explain(path: Path, out: Path, sandbox: str) -> int:
    """Mark one submission again with the seeds in its record, for each student who handed in this file. Return the exit code."""
    submission = read_submission(path)
    records = [marks for marks in read_records(out / "records") if marks.digest == submission.digest]
    if not records:
        raise HybridLabError(f"{path} is on no record in {out / 'records'}: give a graded file, and the --out of that run", "no-record")
    with launcher(sandbox) as workers:
        require_sandbox(workers)
        # the worst exit code: FAILED is larger than DONE
        return max([_replay(submission, known, workers) for known in records])


def _replay(submission: Submission, known: Marks, workers: Launcher) -> int:
    """Mark a submission again, print its marks, and return the exit code: FAILED if the marks differ from those in the record."""
    spec = spec_of(reference(known.lab))
    student = None if known.common else Student(known.student, known.course)
    click.echo(f"{for_log(known.student)}, {known.lab}, run {for_log(known.run)}")
    on_record = {task.key: task for task in known.tasks}
    code = DONE
    for task in mark(submission.cells, spec, student, workers.open, Budget(workers.limits), with_seeds(known)):
        _show(task)
        if task.seed is not None:
            click.echo(f"  hidden cases of the seed {task.seed}")
        before = on_record.get(task.key)
        # sentences are not compared, because another version of hybridlab can word them differently
        if before is None or (task.points, task.code) != (before.points, before.code):
            click.echo(f"  on record: {short_number(before.points)} points, {before.code}" if before else "  not on record")
            code = FAILED
    if known.needs_person:
        click.echo(f"needs a person: {for_log(known.needs_person)}")
    return code


def _as_results(task: TaskMark) -> dict[str, Any]:
    """Return the mark of a task for --json."""
    names = ("key", "title", "points", "out_of", "code", "bonus", "messages", "remarks")
    return {name: getattr(task, name) for name in names}


def _show(task: TaskMark) -> None:
    """Print the feedback of a task as a notebook shows it, followed by the points."""
    feedback = Feedback(task.points == task.out_of, (*task.messages, *task.remarks), task.key)
    first, *rest = repr(feedback).splitlines()
    click.echo(f"{first} ({short_number(task.points)} of {short_number(task.out_of)} {'bonus ' * task.bonus}points)")
    for line in rest:  # for_log removes the blanks at the beginning of a line, so put them back
        click.echo(" " * (len(line) - len(line.lstrip())) + for_log(line))


def _print_summary(marks: list[Marks], out: Path, as_json: bool) -> None:
    """Print the points of each student."""
    ordered = sorted(marks, key=lambda each: each.student)
    lines = [f"{counted(len(marks), 'submission')} graded; see {out / 'grades.csv'} and the folder {out / 'feedback'}"]
    for each in ordered:
        points = f"{short_number(each.points)} of {short_number(each.out_of)}"
        question = f"  needs a person: {for_log(each.needs_person)}" if each.needs_person else ""
        lines.append(f"  {for_log(each.student, 40):20} {points}{question}")
    names = ("student", "points", "out_of", "needs_person")
    results = [{name: getattr(each, name) for name in names} for each in ordered]
    print_results({"grades": out / "grades.csv", "submissions": results}, "\n".join(lines), as_json)
