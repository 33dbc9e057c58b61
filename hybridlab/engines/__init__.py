"""Schedules that really run: each device has a thread, or a process under MPI or torch.distributed, and all operations are measured.

``run`` hands a schedule and its work to an engine. ``Group`` starts the processes of an engine once for several runs. ``RealStep`` is the
work of one step of a small network, and ``TrainingWork`` trains this network. ``longest_pause`` measures whether a function call lets
other threads run at the same time. ``replay`` and its neighbours predict a step from measured times, and ``predict_and_measure`` holds
such predictions beside steps that run.
"""

from hybridlab.engines.actions import run_actions
from hybridlab.engines.group import Group
from hybridlab.engines.module_work import ModuleWork
from hybridlab.engines.pause import longest_pause
from hybridlab.engines.prediction import cross_prediction, formula_prediction, replay
from hybridlab.engines.real_step import RealStep
from hybridlab.engines.run import RunResult, run
from hybridlab.engines.training_work import RankTrained, TrainingWork, trained_weights
from hybridlab.engines.trial import Overhead, PaddedWork, PredictionErrors, Trial, measure_overhead, predict_and_measure
from hybridlab.engines.work import StepWork
from hybridlab.schedule import inputs_from_others

__all__ = [
    "Group",
    "ModuleWork",
    "Overhead",
    "PaddedWork",
    "PredictionErrors",
    "RankTrained",
    "RealStep",
    "RunResult",
    "StepWork",
    "TrainingWork",
    "Trial",
    "cross_prediction",
    "formula_prediction",
    "inputs_from_others",
    "longest_pause",
    "measure_overhead",
    "predict_and_measure",
    "replay",
    "run",
    "run_actions",
    "trained_weights",
]
