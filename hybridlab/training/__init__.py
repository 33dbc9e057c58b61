"""A small network, really trained: on one device, and on K stages x D replicas in the order of a schedule.

``digits`` is the data, ``Network`` the layers, ``train_alone`` the single device that everything is held against; ``train`` runs a
schedule op by op (``Executor``), with a ring in a wire format for the gradients; ``accuracy_check`` compares them.
"""

from hybridlab.training.accuracy import AccuracyRow, AccuracyTable, accuracy_check
from hybridlab.training.alone import loss_and_gradient, train_alone
from hybridlab.training.data import DataSet, batches, digits
from hybridlab.training.executor import Executor
from hybridlab.training.network import Layer, Network
from hybridlab.training.results import Trained, TrainedAlone
from hybridlab.training.stage import Activations, Halfway
from hybridlab.training.training import in_running_order, train

__all__ = [
    "AccuracyRow",
    "AccuracyTable",
    "Activations",
    "DataSet",
    "Executor",
    "Halfway",
    "Layer",
    "Network",
    "Trained",
    "TrainedAlone",
    "accuracy_check",
    "batches",
    "digits",
    "in_running_order",
    "loss_and_gradient",
    "train",
    "train_alone",
]
