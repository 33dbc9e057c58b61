"""The marks of one submission: its cells run in workers, and the judges of ``check`` judge the answers that they hand in."""

import itertools
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybridlab.course.checking.answers import is_empty
from hybridlab.course.checking.calls import ENDED
from hybridlab.course.checking.checking import check_with, wrong
from hybridlab.course.grading.marks import TaskMark
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.session import Budget, Ended, Function, Remote, Session
from hybridlab.course.grading.specs import LabSpec
from hybridlab.course.tasks import Feedback, Instance, PartialCredit, Student, Task
from hybridlab.course.values import Opaque
from hybridlab.errors import HybridLabError

LAB = -1  # stands for the place of every cell that the lab gives: a submission may have it elsewhere, or not at all
CHECK = "from hybridlab import check"  # again, because the student's code can have given this name to something else
MOST_RESTARTS = 12  # workers of one kind for one notebook
NOT_GRADED = ("no-worker", "judge-failed")  # codes of tasks that were not graded, through no fault of the student

Open = Callable[[str, Budget], Session]  # takes the kind of a worker and the seconds left, and starts it


@dataclass(frozen=True)
class HandIn:
    """An answer that a notebook has handed in.

    Parameters
    ----------
    answer : Any
        Plain values, or a function of the worker.
    cell : int
        The place of its cell in the notebook.
    """

    answer: Any
    cell: int


@dataclass
class Outcome:
    """What the cells of a notebook have handed in, and which have failed, in one worker.

    Parameters
    ----------
    session : Session
        The worker in which all these cells have run.
    handed : dict
        For each task the answers that were handed in, in the order of their cells.
    errors : dict
        For each cell that has failed, a sentence and its code.
    provided : set
        Pairs of a name and the place of a cell that missed it, for which cells of the lab have run already.
    """

    session: Session
    handed: dict[str, list[HandIn]] = field(default_factory=dict)
    errors: dict[int, tuple[str, str]] = field(default_factory=dict)
    provided: set[tuple[str, int]] = field(default_factory=set)


class Player:
    """Runs the cells of a notebook in workers of one kind. If a worker ends, the next one leaves out the cell that has ended it.

    Parameters
    ----------
    cells : sequence of CodeCell
        The code cells of the submission.
    spec : LabSpec
        What the lab asks for.
    open_session : callable
        Starts a worker.
    """

    def __init__(self, cells: Sequence[CodeCell], spec: LabSpec, open_session: Callable[[], Session]) -> None:
        self._cells, self._spec, self._open = cells, spec, open_session
        self._left_out: dict[int, tuple[str, str]] = {}
        self._outcome: Outcome | None = None
        self._restarts = itertools.count()
        self._before = LAB  # the place of the cell that ran last

    def play(self) -> Outcome | None:
        """Return the outcome of the cells in a worker that is alive; run them if there is none. None if they ended too many workers.

        Raises
        ------
        HybridLabError
            A worker does not start.
        """
        if self._outcome is not None and self._outcome.session.alive and self._outcome.session.busy:
            self._outcome.session.close()  # a function that waits for ever still runs there
        while self._outcome is None or not self._outcome.session.alive:
            if next(self._restarts) >= MOST_RESTARTS:
                return None
            self._outcome = Outcome(self._open())
            self._run_cells(self._outcome)
        return self._outcome

    def provide(self, outcome: Outcome, name: str, place: int) -> bool:
        """Run the cells of the lab that define a name which a cell misses. Return whether there are any that have not run for it yet."""
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
        """Return the words for a cell in sentences. Its task names it if it has one, because the numbers in JupyterLab change."""
        if not 0 <= place < len(self._cells):
            return "a cell of the lab"
        keys = self._spec.keys_in(self._cells[place])
        return f"the answer cell of {keys[-1]}" if keys else cell_number(place)

    def close(self) -> None:
        """End the worker."""
        if self._outcome is not None:
            self._outcome.session.close()

    def _run_cells(self, outcome: Outcome) -> None:
        """Run all cells in a new worker: imports of the lab, the student's cells, failed ones once more, and missing hand-ins."""
        for source in self._spec.imports if LAB not in self._left_out else ():
            if not self._run(outcome, source, LAB):
                return
        own = [place for place, cell in enumerate(self._cells) if not self._spec.gives(cell.source) and place not in self._left_out]
        for place in own:
            if not self._run(outcome, self._cells[place].source, place):
                return
        for place in list(outcome.errors):  # a cell below may have defined what it needed
            if place >= 0 and place not in self._left_out and not self._run(outcome, self._cells[place].source, place):
                return
        after = len(self._cells)  # the place of hand-ins that stand in no cell of the student
        for task in self._spec.tasks if after not in self._left_out else ():  # the answer may be there, and only the call of check deleted
            handed = any(_is_answer(hand_in.answer) for hand_in in outcome.handed.get(task.key, []))
            if not handed and not self._run(outcome, f"{CHECK}\n{self._spec.hand_ins[task.key]}", after):
                return
        outcome.errors.update(self._left_out)

    def _run(self, outcome: Outcome, source: str, place: int) -> bool:
        """Run a cell, and the cells of the lab that define what it misses. Return whether the worker is still alive."""
        try:
            while True:
                handed, error = outcome.session.run(source, self.label(place))
                if not error or not self.provide(outcome, str(error.get("name")), place):
                    break
        except Ended as why:
            if why.code == "unasked" and self._before != LAB:
                place = self._before  # it ran to its end, and has left more than its reply
            if LAB not in self._left_out or place == LAB:
                self._left_out[place] = (f"{self.label(place)} did not end well: {why}", why.code or "ended")
            return False
        finally:
            self._before = place
        for key, answer in handed:
            # a cell that runs twice hands in once
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
    seconds: float,
    seed_of: Callable[[str], int | None],
) -> Iterator[TaskMark]:
    """Yield the mark of each task of a lab.

    Parameters
    ----------
    cells : sequence of CodeCell
        The code cells of the submission.
    spec : LabSpec
        What the lab asks for.
    student : Student or None
        Whose sizes and twists the answers have; None for the sizes in the text, without twists.
    open_session : callable
        Starts a worker of a kind.
    seconds : float
        How long all cells and calls together may take.
    seed_of : callable
        Takes the key of a build and returns the seed of its hidden cases; None for the public cases.
    """
    budget = Budget(seconds)  # one for the workers of all kinds: an endless notebook ends soon
    players = {kind: Player(cells, spec, lambda kind=kind: open_session(kind, budget)) for kind in ("library", "bare", "threads")}  # type: ignore[misc]
    try:
        for task in spec.tasks:
            seed = seed_of(task.key) if task.kind == "build" else None
            asked = task.instance(None) if student is None else task.personal(student.seed(task.key))
            player = players[asked.data.worker if task.kind == "build" else "library"]
            try:
                marked = _mark_task(task, asked, player, cells, spec, seed)
            except Exception as why:  # whatever it is, the other tasks are marked
                player.close()  # the next task begins with a new worker
                marked = _not_graded(task, why, seed)
            yield marked
    finally:
        for player in players.values():
            player.close()


def cell_number(place: int) -> str:
    """Return the number of a cell, for sentences. Cells of code are counted from 1."""
    return f"code cell {place + 1}, counted from the top"


def _mark_task(task: Task, asked: Instance, player: Player, cells: Sequence[CodeCell], spec: LabSpec, seed: int | None) -> TaskMark:
    """Judge the last answer to a task that the cells hand in, and return the mark."""
    outcome = player.play()
    answers = [hand_in for hand_in in outcome.handed.get(task.key, []) if _is_answer(hand_in.answer)] if outcome else []
    remarks = []
    # one cell can hand in several times, as in a loop; that needs no remark
    if len({hand_in.cell for hand_in in answers}) > 1:
        remarks.append(f"handed in {len(answers)} times: the last one counts, in {cell_number(answers[-1].cell)}")
    if outcome is None:
        why = f"not tried: cells of this notebook have ended {MOST_RESTARTS} workers, or used up its time"
        feedback, credit = wrong("too-slow", why), None
    elif answers:
        feedback, credit = _judge(task, asked, player, answers[-1], seed)
    else:
        feedback, credit = _nothing_handed_in(task, asked, outcome, cells, spec), None
    if credit:
        remarks.append(f"partial credit: {credit.reached}")
    share = 1.0 if feedback.passed else credit.share if credit else 0.0
    points = round(share * task.points, 2)  # a share such as a third, with the decimals of a gradebook
    return TaskMark(task.key, task.title, points, float(task.points), feedback.code, feedback.messages, tuple(remarks), seed)


def _not_graded(task: Task, why: Exception, seed: int | None) -> TaskMark:
    """Return the mark of a task that could not be graded, through no fault of the student."""
    if isinstance(why, HybridLabError) and why.code in ("no-worker", "no-sandbox"):
        code, reason = "no-worker", str(why)
    else:
        place = traceback.extract_tb(why.__traceback__)[-1]
        code, reason = "judge-failed", f"its judge has failed with {type(why).__name__} in {Path(place.filename).name}, line {place.lineno}"
    message = f"not graded, and a person will look at it: {reason}"
    return TaskMark(task.key, task.title, 0.0, float(task.points), code, (message,), (), seed)


def _judge(task: Task, asked: Instance, player: Player, hand_in: HandIn, seed: int | None) -> tuple[Feedback, PartialCredit | None]:
    """Judge an answer, and return the feedback and, if it is wrong, its partial credit."""
    answer, outcome = hand_in.answer, player.play()
    if task.kind != "build" or not isinstance(answer, Function) or outcome is None:
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
    if feedback.passed or not task.partial_credit or feedback.code in ENDED:
        return feedback, None
    reached = []
    for code in build.codes(remote, **seeds):  # of all cases: the worst one counts
        if (credit := task.credit_for(code)) is None:
            return feedback, None
        reached.append(credit)
    if build.twist and not any(task.instance(None).data.codes(remote, **seeds)):
        return feedback, None  # nor for what is right without the twist, as the published solution is
    return feedback, min(reached, key=lambda credit: credit.share, default=None)


def _nothing_handed_in(task: Task, asked: Instance, outcome: Outcome, cells: Sequence[CodeCell], spec: LabSpec) -> Feedback:
    """Return the feedback where nothing was handed in: the error of the task's cell, if it has one."""
    for place, (sentence, code) in sorted(outcome.errors.items(), reverse=True):
        # from the bottom: the last cell of the task counts
        if 0 <= place < len(cells) and task.key in spec.keys_in(cells[place]):
            return wrong(code, sentence)
    if not any(task.key in spec.keys_in(cell) for cell in cells):
        lost = f"this notebook has no answer cell for {task.key}: make a new copy in another folder, and take its cell"
        return wrong("nothing-handed-in", lost, asked.prompt)
    return wrong("nothing-handed-in", f"nothing handed in yet: {asked.prompt}")


def _is_answer(answer: Any) -> bool:
    """Whether something was handed in: neither a stub nor the ``...`` that a lab has in place of an answer."""
    if isinstance(answer, Function):
        return not answer.stub
    if isinstance(answer, Opaque):
        return True
    if isinstance(answer, (list, tuple)):
        return any(_is_answer(each) for each in answer)
    if isinstance(answer, dict):
        return any(_is_answer(each) for each in answer.values())
    return answer is not ... and not is_empty(answer)
