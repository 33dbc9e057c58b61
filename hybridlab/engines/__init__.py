"""Real runs of schedules: each device is a thread or a process (MPI or torch.distributed), and every operation is measured.

An engine executes a schedule. The work of a run is the arithmetic of its operations. ``run`` runs a schedule on an engine. ``Group`` starts
the processes of an engine once for several runs. ``RealStep`` is the work of one training step of a small network, and ``TrainingWork`` is
the work of many steps. ``longest_pause`` measures whether other threads can run during a function call. ``replay``, ``cross_prediction``
and ``formula_prediction`` predict a step from measured times, and ``predict_and_measure`` compares these predictions with measured steps.
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
