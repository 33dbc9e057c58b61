"""The commands of ``hybridlab``: those on measured times and schedules, one subject a file, beside those of the course."""

from hybridlab.commands import plan, run, schedules, times, trace, zoo
from hybridlab.course.grading import cli
from hybridlab.course.grading.command_line import main

__all__ = ["cli", "main", "plan", "run", "schedules", "times", "trace", "zoo"]
