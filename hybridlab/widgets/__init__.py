"""Interactive views for notebooks and web pages. A view is a Python class with traits, and a JavaScript file that draws the view."""

from hybridlab.widgets.bet import Bet, Revealed
from hybridlab.widgets.cluster_explorer import ClusterExplorer
from hybridlab.widgets.error_explorer import ErrorExplorer
from hybridlab.widgets.mesh_view import MeshView
from hybridlab.widgets.ring_stepper import RingStepper
from hybridlab.widgets.schedule_editor import ScheduleEditor
from hybridlab.widgets.step_explorer import StepExplorer
from hybridlab.widgets.sweep_explorer import SweepExplorer
from hybridlab.widgets.timeline_explorer import TimelineExplorer
from hybridlab.widgets.timeline_film import TimelineFilm
from hybridlab.widgets.training_curves import TrainingCurves

__all__ = [
    "Bet",
    "ClusterExplorer",
    "ErrorExplorer",
    "MeshView",
    "Revealed",
    "RingStepper",
    "ScheduleEditor",
    "StepExplorer",
    "SweepExplorer",
    "TimelineExplorer",
    "TimelineFilm",
    "TrainingCurves",
]
