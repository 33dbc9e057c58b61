"""The tasks of the labs, with one file for each lab. ``check`` judges an answer, and returns sentences for the student and a code."""

# Importing a lab's file adds the tasks of the lab to the registry.
from hybridlab.course.tasks import (  # noqa: F401
    lab01,
    lab02,
    lab02_builds,
    lab03,
    lab04,
    lab05,
    lab06,
    lab07,
    lab08,
    lab09,
    lab10,
    lab11,
    lab12,
    lab12_builds,
    lab13,
    lab14,
    lab15,
    lab16,
    lab17,
)
from hybridlab.course.tasks.builds import Build, Case, Slip, build_task
from hybridlab.course.tasks.checking import TASKS, Feedback, Instance, Rung, Task, check, task
from hybridlab.course.tasks.questions import Number, Question, number_task
from hybridlab.course.tasks.rings import faulty_ring
from hybridlab.course.tasks.student import Student
from hybridlab.course.tasks.twists import Twist

__all__ = [
    "TASKS",
    "Build",
    "Case",
    "Feedback",
    "Instance",
    "Number",
    "Question",
    "Rung",
    "Slip",
    "Student",
    "Task",
    "Twist",
    "build_task",
    "check",
    "faulty_ring",
    "number_task",
    "task",
]
