"""Replicas of a pipeline: the order and the costs of each rank in a mesh, and the ranks that hold each stage."""

import numpy as np

from hybridlab.arrays import Ints, readonly
from hybridlab.checks import MOST_CELLS, counted, short_repr, whole_number
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.mesh import Mesh
from hybridlab.schedule import Schedule
from hybridlab.schedule.replicated import Replicated, side_by_side

__all__ = ["Replicated", "costs_of_all", "holders", "replicate"]


def replicate(schedule: Schedule, replicas: int) -> Replicated:
    """Return the orders of all ranks for several ``replicas`` of one pipeline.

    Parameters
    ----------
    schedule : Schedule
        The schedule of one pipeline.
    replicas : int
        The number of pipelines.

    Returns
    -------
    Replicated
        The orders of all ranks. :func:`~hybridlab.simulate` takes this object, with costs that are equal for all devices or given for each
        rank.

    Raises
    ------
    HybridLabError
        ``schedule`` is not a Schedule, ``replicas`` is below 1, or the operations do not fit in memory.

    Examples
    --------
    >>> from hybridlab.schedules import build
    >>> print(replicate(build("1f1b", devices=2, microbatches=2), replicas=2))
    device 0: 0F0 0F1 0B0 0B1
    device 1: 1F0 1B0 1F1 1B1
    device 2: 0F0 0F1 0B0 0B1
    device 3: 1F0 1B0 1F1 1B1
    """
    if not isinstance(schedule, Schedule):
        raise HybridLabError(
            f"replicate takes the Schedule of one pipeline, such as build('1f1b', 2, 4), not {short_repr(schedule)}", "not-a-schedule"
        )
    replicas = whole_number(replicas, "replicas")
    Mesh(schedule.devices, replicas)  # raises an error if there are too many devices
    size = schedule.kind.size
    if size * replicas > MOST_CELLS:
        message = f"{counted(replicas, 'replica')} of {counted(size, 'operation')} are more than {MOST_CELLS:,}"
        raise HybridLabError(f"{message} and do not fit in memory; take fewer replicas or microbatches", "too-large")
    return side_by_side(schedule, replicas)


def costs_of_all(costs: Costs, mesh: Mesh) -> Costs:
    """Return the costs of all ranks of a mesh. Costs of one pipeline are repeated for each replica.

    >>> costs_of_all(Costs(forward=[1, 2], backward=3), Mesh(stages=2, replicas=2)).forward
    array([1., 2., 1., 2.])
    """
    if costs.devices in (None, mesh.size):  # equal for all ranks, or given for each rank
        return costs
    if costs.devices != mesh.stages:
        wanted = f"one value, one for each of the {mesh.stages} devices of a pipeline, or one for each of the {mesh.size} ranks"
        raise HybridLabError(f"the costs are for {costs.devices} devices: give {wanted}", "does-not-fit")
    return costs.repeated(mesh.replicas)


def holders(schedule: Schedule, replicas: int) -> Ints:
    """Return, for each stage, the ranks that hold its weights and average its gradients; shape (stages, replicas x copies).

    The ranks of a stage are sorted by replica, then by copy of the weights.

    Raises
    ------
    HybridLabError
        One device holds two copies of a stage (``two-copies-on-a-device``).

    Examples
    --------
    >>> from hybridlab.schedules import build
    >>> holders(build("chimera", devices=2, microbatches=2), replicas=2).tolist()
    [[0, 1, 2, 3], [1, 0, 3, 2]]
    """
    paths = np.array(schedule.paths)
    for stage, devices in enumerate(np.sort(paths, axis=0).T):
        twice = devices[1:][np.diff(devices) == 0]
        if twice.size:
            message = f"device {twice[0]} holds stage {stage} in two copies of the weights"
            advice = "gradients are averaged between devices, so put the copies of a stage on different devices"
            raise HybridLabError(f"{message}: {advice}", "two-copies-on-a-device")
    # shape (stages, replicas, copies)
    ranks = paths.T[:, None] + schedule.devices * np.arange(whole_number(replicas, "replicas"))[:, None]
    return readonly(ranks.reshape(schedule.stages, -1))
