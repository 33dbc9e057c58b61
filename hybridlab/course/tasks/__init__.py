"""The tasks of the labs, with one file for each lab. ``check`` judges an answer, and returns sentences for the student and a code."""

# Importing a lab's file adds the tasks of the lab to the registry.
from hybridlab.course.tasks import lab01, lab02, lab03, lab04, lab05, lab06, lab07, lab08, lab09, lab10, lab11, lab12, lab13, lab14  # noqa: F401
from hybridlab.course.tasks.checking import TASKS, Feedback, Task, check, task

__all__ = ["TASKS", "Feedback", "Task", "check", "task"]
