"""Operations, schedules, the text form of schedules, and the proof that a schedule can run."""

from hybridlab.schedule.actions import Action, inputs_from_others, read_actions, written_actions
from hybridlab.schedule.ops import CODE, KINDS, B, F, I, Kind, Op, W
from hybridlab.schedule.schedule import Operations, Schedule
from hybridlab.schedule.validation import Problem

__all__ = [
    "CODE",
    "KINDS",
    "Action",
    "B",
    "F",
    "I",
    "Kind",
    "Op",
    "Operations",
    "Problem",
    "Schedule",
    "W",
    "inputs_from_others",
    "read_actions",
    "written_actions",
]
