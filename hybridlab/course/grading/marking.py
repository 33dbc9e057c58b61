"""Mark one submission. Its cells run in workers, and the judges of ``check`` judge the answers that the cells hand in.

Here a build is a coding task: the answer is a function of the student. A twist is a change of a coding task for one student.
"""

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hybridlab.course.checking.answers import is_empty
from hybridlab.course.checking.calls import ENDED
from hybridlab.course.checking.checking import check_with, wrong
from hybridlab.course.grading.budget import Budget
from hybridlab.course.grading.marks import TaskMark
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.session import Ended, Function, Remote, Session
from hybridlab.course.grading.specs import LabSpec
from hybridlab.course.tasks import Feedback, Instance, PartialCredit, Student, Task
from hybridlab.course.values import Opaque
from hybridlab.errors import HybridLabError

LAB = -1  # the index of every cell that the lab gives: such a cell can be missing in a submission
# imported again before a hand-in, because the student's code can have assigned another value to this name
CHECK = "from hybridlab import check"
MOST_WORKERS = 15  # the greatest number of workers for one notebook
NOT_GRADED = ("no-worker", "judge-failed")  # codes of tasks that were not graded because of a fault of the grader

# a function that starts a worker: it takes the worker's kind and the budget of the notebook, and returns a session
Open = Callable[[str, Budget], Session]


@dataclass(frozen=True)
class HandIn:
    """An answer that a cell of a notebook has handed in.

    Parameters
    ----------
    answer : Any
        Plain values, or a reference to a function in the worker.
    cell : int
        The index of the cell among the code cells of the notebook.
    """

    answer: Any
    cell: int


@dataclass
class Outcome:
    """The results of running the cells of a notebook in one worker: answers and errors.

    Parameters
    ----------
    session : Session
        The session with the worker in which the cells have run.
    handed : dict
        The answers to each task, in the order of their cells. The keys are those of the tasks.
    errors : dict
        For each cell that has failed, a sentence and an error code. The keys are indices of cells.
    provided : set
        Pairs of an undefined name and the index of the cell that uses the name. For these pairs, the cells of the lab that define the
        name have run already.
    """

    session: Session
    handed: dict[str, list[HandIn]] = field(default_factory=dict)
    errors: dict[int, tuple[str, str]] = field(default_factory=dict)
    provided: set[tuple[str, int]] = field(default_factory=set)


@dataclass
class Attempts:
    """What the workers of all kinds share for one notebook: its budget, and what has ended workers.

    Parameters
    ----------
    budget : Budget
        The computing time of the notebook.
    started : int
        The number of workers that have been started.
    left_out : dict
        The cells that have ended a worker, and are not run again. For each cell, a sentence and an error code.
    """

    budget: Budget
    started: int = 0
    left_out: dict[int, tuple[str, str]] = field(default_factory=dict)

    def over(self) -> Feedback | None:
        """Return the feedback on the tasks that are left if no more workers are started; None if another one may start."""
        if self.started >= MOST_WORKERS:
            return wrong("ended", f"not tried: cells of this notebook have crashed or run too long in {MOST_WORKERS} processes")
        spent = self.budget.all_used()
        return wrong("too-slow", f"not tried: {spent}") if spent else None


class Player:
    """Run the cells of a notebook in workers of one kind. If a cell crashes its worker or runs too long, a new worker runs all other cells.

    Parameters
    ----------
    cells : sequence of CodeCell
        The code cells of the submission.
    spec : LabSpec
        The tasks and given cells of the lab.
    open_session : callable
        Starts a worker and returns the session.
    attempts : Attempts
        What the players of all kinds share.
    """

    def __init__(self, cells: Sequence[CodeCell], spec: LabSpec, open_session: Callable[[], Session], attempts: Attempts) -> None:
        self._cells, self._spec, self._open, self._attempts = cells, spec, open_session, attempts
        self._left_out = attempts.left_out
        self._outcome: Outcome | None = None
        self._before = LAB  # the index of the cell that ran last

    def play(self) -> Outcome | Feedback:
        """Return the outcome of the cells in a living worker. Without such a worker, start one and run the cells.

        Return the feedback on the tasks that are left if no more workers may start, see ``Attempts.over``.

        Raises
        ------
        HybridLabError
            ``no-worker``: a worker does not start.
        """
        if self._outcome is not None and self._outcome.session.alive and self._outcome.session.busy:
            self._outcome.session.close()  # a function of the student still runs in this worker, perhaps for ever
        while self._outcome is None or not self._outcome.session.alive:
            if over := self._attempts.over():
                return over
            self._attempts.started += 1
            self._outcome = Outcome(self._open())
            self._run_cells(self._outcome)
        return self._outcome

    def provide(self, outcome: Outcome, name: str, place: int) -> bool:
        """Run the cells of the lab that define a name. The cell with the index ``place`` uses this name, but it is undefined.

        Return whether cells have run. Return False if there are no such cells, or if they have run before for this name and cell.
        """
        keys = self._spec.keys_in(self._cells[place]) if 0 <= place < len(self._cells) else ()
        cells = () if (name, place) in outcome.provided or LAB in self._left_out else self._spec.providers(name, keys)
        outcome.provided.add((name, place))
        for cell in cells:
            try:
                outcome.session.run(cell, self.label(LAB))
            except Ended as why:
                self._left_out[LAB] = (f"{self.label(LAB)} did not end well: {why}", why.code or "ended")
                raise
        return bool(cells)

    def label(self, place: int) -> str:
        """Return the words for a cell in sentences: the key of its task, or else its number from the top.

        The numbers that JupyterLab shows are not used, because they change whenever a cell runs.
        """
        if not 0 <= place < len(self._cells):
            return "a cell of the lab"
        keys = self._spec.keys_in(self._cells[place])
        return f"the answer cell of {keys[-1]}" if keys else cell_number(place)

    def owner(self, place: int) -> str:
        """Return the words for a cell in sentences about computing time: the key of its task, or else its number from the top."""
        keys = self._spec.keys_in(self._cells[place]) if 0 <= place < len(self._cells) else ()
        return keys[-1] if keys else self.label(place)

    def close(self) -> None:
        """End the worker."""
        if self._outcome is not None:
            self._outcome.session.close()

    def _run_cells(self, outcome: Outcome) -> None:
        """Run cells in a new worker: (1) the lab's imports; (2) the student's cells; (3) failed cells again; (4) missing hand-ins."""
        for source in self._spec.imports if LAB not in self._left_out else ():
            if not self._run(outcome, source, LAB):
                return
        own = [place for place, cell in enumerate(self._cells) if not self._spec.gives(cell.source) and place not in self._left_out]
        for place in own:
            if not self._run(outcome, self._cells[place].source, place):
                return
        for place in list(outcome.errors):  # a later cell can have defined the names that a failed cell needs
            if place >= 0 and place not in self._left_out and not self._run(outcome, self._cells[place].source, place):
                return
        after = len(self._cells)  # the index for hand-ins that are not in a cell of the student
        # the student can have written an answer and deleted the call of check, so call check here
        for task in self._spec.tasks if after not in self._left_out else ():
            handed = any(_is_answer(hand_in.answer) for hand_in in outcome.handed.get(task.key, []))
            if not handed and not self._run(outcome, f"{CHECK}\n{self._spec.hand_ins[task.key]}", after):
                return
        outcome.errors.update(self._left_out)

    def _run(self, outcome: Outcome, source: str, place: int) -> bool:
        """Run a cell, and the cells of the lab that define its undefined names. Return whether the worker is still alive."""
        self._attempts.budget.begin(self.owner(place))
        try:
            while True:
                handed, error = outcome.session.run(source, self.label(place))
                if not error or not self.provide(outcome, str(error.get("name")), place):
                    break
        except Ended as why:
            if why.code == "unasked" and self._before != LAB:
                place = self._before  # the cell before has sent more than its reply, for example from a thread, so that cell is at fault
            if LAB not in self._left_out or place == LAB:
                self._left_out[place] = (f"{self.label(place)} did not end well: {why}", why.code or "ended")
            return False
        finally:
            self._before = place
        for key, answer in handed:
            # if a cell runs twice, only its last hand-in counts
            hand_ins = [each for each in outcome.handed.get(key, []) if each.cell != place]
            outcome.handed[key] = sorted([*hand_ins, HandIn(answer, place)], key=lambda each: each.cell)
        if error:
            outcome.errors[place] = outcome.session.describe_error(error, self.label(place))
        else:
            outcome.errors.pop(place, None)
        return True


def mark(
    cells: Sequence[CodeCell],
    spec: LabSpec,
    student: Student | None,
    open_session: Open,
    budget: Budget,
    seed_of: Callable[[str], int | None],
) -> Iterator[TaskMark]:
    """Yield the mark of each task of a lab.

    Parameters
    ----------
    cells : sequence of CodeCell
        The code cells of the submission.
    spec : LabSpec
        The tasks and given cells of the lab.
    student : Student or None
        The student, who determines the sizes and twists of the tasks. None stands for the tasks in the text of the lab.
    open_session : callable
        Starts a worker of a given kind and returns the session.
    budget : Budget
        The computing time of the notebook. Workers of all kinds share it, so that a notebook with endless loops ends soon.
    seed_of : callable
        Takes the key of a build and returns the seed of its hidden cases, or None for the public cases.
    """
    attempts = Attempts(budget)
    players = {
        kind: Player(cells, spec, lambda kind=kind: open_session(kind, budget), attempts)  # type: ignore[misc]
        for kind in ("library", "bare", "threads")
    }
    try:
        for task in spec.tasks:
            seed = seed_of(task.key) if task.kind == "build" else None
            asked = task.instance(None) if student is None else task.personal(student.seed(task.key))
            player = players[asked.data.worker if task.kind == "build" else "library"]
            try:
                marked = _mark_task(task, asked, player, cells, spec, seed, attempts)
            except Exception as why:  # after any error, mark the other tasks
                player.close()  # the next task starts a new worker
                marked = _not_graded(task, why, seed)
            yield replace(marked, bonus=task.key in spec.bonus)
    finally:
        for player in players.values():
            player.close()


def cell_number(place: int) -> str:
    """Return the number of a code cell as words for a sentence. The first code cell has the number 1."""
    return f"code cell {place + 1}, counted from the top"


def _mark_task(
    task: Task, asked: Instance, player: Player, cells: Sequence[CodeCell], spec: LabSpec, seed: int | None, attempts: Attempts
) -> TaskMark:
    """Judge the last answer that the cells hand in for a task, and return the mark."""
    outcome = player.play()
    if isinstance(outcome, Feedback):
        return _marked(task, outcome, None, [], seed)
    attempts.budget.begin(task.key)
    answers = [hand_in for hand_in in outcome.handed.get(task.key, []) if _is_answer(hand_in.answer)]
    remarks = []
    # no remark if one cell hands in several answers, as in a loop
    if len({hand_in.cell for hand_in in answers}) > 1:
        remarks.append(f"handed in {len(answers)} times: the last answer counts, in {cell_number(answers[-1].cell)}")
    if answers:
        feedback, credit = _judge(task, asked, player, outcome, answers[-1], seed)
    else:
        feedback, credit = _nothing_handed_in(task, asked, outcome, cells, spec), None
    return _marked(task, feedback, credit, remarks, seed)


def _marked(task: Task, feedback: Feedback, credit: PartialCredit | None, remarks: list[str], seed: int | None) -> TaskMark:
    """Return the mark of a task from the feedback on its answer."""
    if credit:
        remarks.append(f"partial credit: {credit.reached}")
    share = 1.0 if feedback.passed else credit.share if credit else 0.0
    points = round(share * task.points, 2)  # two decimals, as in a gradebook: a share can be one third
    return TaskMark(task.key, task.title, points, float(task.points), feedback.code, feedback.messages, tuple(remarks), seed)


def _not_graded(task: Task, why: Exception, seed: int | None) -> TaskMark:
    """Return the mark of a task that could not be graded because of a fault of the grader."""
    if isinstance(why, HybridLabError) and why.code in ("no-worker", "no-sandbox"):
        code, reason = "no-worker", str(why)
    else:
        place = traceback.extract_tb(why.__traceback__)[-1]
        code, reason = "judge-failed", f"its judge has failed with {type(why).__name__} in {Path(place.filename).name}, line {place.lineno}"
    message = f"not graded, and a person will look at it: {reason}"
    return TaskMark(task.key, task.title, 0.0, float(task.points), code, (message,), (), seed)


def _judge(
    task: Task, asked: Instance, player: Player, outcome: Outcome, hand_in: HandIn, seed: int | None
) -> tuple[Feedback, PartialCredit | None]:
    """Judge an answer. Return the feedback, and the partial credit of a wrong answer (None if there is no credit)."""
    answer = hand_in.answer
    if task.kind != "build" or not isinstance(answer, Function):
        feedback = check_with(task, asked, answer)
        return feedback, None if feedback.passed else task.credit_for(feedback.code)
    build = asked.data
    remote = Remote(
        outcome.session,
        answer,
        fresh=build.fresh,
        cell=player.label(hand_in.cell),
        provide=lambda name: player.provide(outcome, name, hand_in.cell),
    )
    seeds = {} if seed is None else {"seed": seed}
    feedback = check_with(task, Instance(asked.prompt, lambda function: build.check(function, **seeds), build), remote)
    if feedback.passed or not task.partial_credit or set(ENDED) & set(feedback.failed):
        return feedback, None
    credits_of_cases = [task.credit_for(code) for code in feedback.failed]
    if None in credits_of_cases:
        return feedback, None
    if build.twist and not any(task.instance(None).data.codes(remote, **seeds)):
        return feedback, None  # the answer is right without the twist: it can be the public solution, which gets no credit
    # the case with the least credit counts
    return feedback, min(filter(None, credits_of_cases), key=lambda credit: credit.share, default=None)


def _nothing_handed_in(task: Task, asked: Instance, outcome: Outcome, cells: Sequence[CodeCell], spec: LabSpec) -> Feedback:
    """Return the feedback for a task without an answer: the error of the task's cell, or else that nothing was handed in."""
    for place, (sentence, code) in sorted(outcome.errors.items(), reverse=True):
        # from the bottom, because the last cell of a task counts
        if 0 <= place < len(cells) and task.key in spec.keys_in(cells[place]):
            return wrong(code, sentence)
    if not any(task.key in spec.keys_in(cell) for cell in cells):
        lost = (
            f"this notebook has no answer cell for {task.key}: make a new copy of the lab in another folder, and copy the cell from there"
        )
        return wrong("nothing-handed-in", lost, asked.prompt)
    return wrong("nothing-handed-in", f"nothing handed in yet: {asked.prompt}")


def _is_answer(answer: Any) -> bool:
    """Return whether a value is an answer. No answers are: stubs of functions, and ``...``, which labs have in place of answers."""
    if isinstance(answer, Function):
        return not answer.stub
    if isinstance(answer, Opaque):
        return True
    if isinstance(answer, (list, tuple)):
        return any(_is_answer(each) for each in answer)
    if isinstance(answer, dict):
        return any(_is_answer(each) for each in answer.values())
    return answer is not ... and not is_empty(answer)
