"""Real training of a small network: on one device, and on K stages x D replicas in the order of a schedule.

- ``digits`` and ``random_text`` return data, and ``Network`` has the layers.
- ``train_alone`` trains on one device. Its result is the reference for training on many devices.
- ``train`` trains on many devices. The ``Executor`` runs the operations of a schedule one by one. Your own function can replace it: such a
  function calls the ``stage_functions``. A ring all-reduce averages the gradients; a wire format encodes its messages.
- ``accuracy_check`` compares the results of ``train`` with the result of ``train_alone``.
"""

from hybridlab.training.accuracy import AccuracyRow, AccuracyTable, accuracy_check
from hybridlab.training.alone import Trained, TrainedAlone, loss_and_gradient, train_alone
from hybridlab.training.data import DataSet, batches, digits, random_text
from hybridlab.training.executor import Executor
from hybridlab.training.network import Layer, Network
from hybridlab.training.stages import Activations, stage_functions
from hybridlab.training.training import in_running_order, train

__all__ = [
    "AccuracyRow",
    "AccuracyTable",
    "Activations",
    "DataSet",
    "Executor",
    "Layer",
    "Network",
    "Trained",
    "TrainedAlone",
    "accuracy_check",
    "batches",
    "digits",
    "in_running_order",
    "loss_and_gradient",
    "random_text",
    "stage_functions",
    "train",
    "train_alone",
]
