"""The tasks of all labs. ``check`` judges an answer to a task, and returns sentences for the student and the code of the mistake."""

from importlib import import_module
from pkgutil import iter_modules

from hybridlab.course import labs
from hybridlab.course.checking.builds import Build, Case, KnownMistake, build_task
from hybridlab.course.checking.checking import TASKS, Feedback, Instance, PartialCredit, Task, check, task
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.checking.student import Student
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.course.labs.lab04.rings import faulty_ring

# Importing the tasks of a lab adds them to the registry, in the order of the labs.
for lab in sorted(each.name for each in iter_modules(labs.__path__)):
    import_module(f"{labs.__name__}.{lab}.tasks")
del lab

__all__ = [
    "TASKS",
    "Build",
    "Case",
    "Example",
    "Feedback",
    "Instance",
    "KnownMistake",
    "Number",
    "PartialCredit",
    "Question",
    "Student",
    "Task",
    "Twist",
    "build_task",
    "check",
    "faulty_ring",
    "number_task",
    "task",
]
