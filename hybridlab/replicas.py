"""The schedule of a whole mesh: one pipeline's orders, once for each replica."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.fixed import fixed
from hybridlab.inputs import MOST_CELLS, counted, shown, whole_number
from hybridlab.mesh import Mesh
from hybridlab.rows import Ints
from hybridlab.schedule import Schedule


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Replicated(Schedule):
    r"""The schedule of every rank of a mesh, as :func:`~hybridlab.replicas.replicate` makes it: each replica runs the same orders.

    Its devices are the ranks, ``replica * K + device``. ``paths``, ``copy_of``, ``stages``, ``chunks`` and ``microbatches``
    are those of one pipeline; the arrays hold the operations of all replicas, one replica after the other, and ``source``
    never leads from one replica to another.
    """

    replicas: int = 1

    def __init__(self, schedule: Schedule, replicas: int) -> None:
        if not isinstance(schedule, Schedule) or isinstance(schedule, Replicated):
            raise HybridLabError(f"what is replicated is the Schedule of one pipeline, such as build('1f1b', 2, 4), not {shown(schedule)}")
        replicas = whole_number(replicas, "replicas")
        Mesh(schedule.devices, replicas)  # refuses more devices than there can be
        size = schedule.kind.size
        if size * replicas > MOST_CELLS:
            told = f"{counted(replicas, 'replica')} of {counted(size, 'operation')} are more than {MOST_CELLS:,}"
            raise HybridLabError(f"{told} and do not fit in memory; take fewer replicas or microbatches")
        for column in ("kind", "stage", "microbatch", "slot"):
            object.__setattr__(self, column, fixed(np.tile(getattr(schedule, column), replicas)))
        replica = np.arange(replicas)[:, None]
        source = np.where(schedule.source >= 0, schedule.source + replica * size, -1)
        object.__setattr__(self, "device", fixed((schedule.device + replica * schedule.devices).ravel()))
        object.__setattr__(self, "source", fixed(source.ravel()))
        for name in ("name", "microbatches", "paths", "copy_of"):
            object.__setattr__(self, name, getattr(schedule, name))
        object.__setattr__(self, "replicas", replicas)

    @property
    def devices(self) -> int:
        """Number of devices of the whole mesh."""
        return super().devices * self.replicas

    @property
    def chunks(self) -> int:
        """Number of stages a device holds (model chunks)."""
        return self.stages * self.replicas // self.devices

    @property
    def mesh(self) -> Mesh:
        """Where the ranks stand; the "stages" of this mesh are the devices of one pipeline."""
        return Mesh(super().devices, self.replicas)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {counted(self.replicas, 'replica')}>"

    def _key(self) -> tuple[Any, ...]:
        return (self.replicas, *super()._key())


def replicate(schedule: Schedule, replicas: int) -> Replicated:
    """Return the schedule of a whole mesh: ``replicas`` times one pipeline, side by side.

    ``simulate`` times it with costs of one value, or of one a rank. Raises :class:`HybridLabError` for what is no
    schedule of one pipeline, fewer than one replica, and sizes that do not fit in memory.

    >>> from hybridlab.schedules import build
    >>> print(replicate(build("1f1b", devices=2, microbatches=2), replicas=2))
    device 0: 0F0 0F1 0B0 0B1
    device 1: 1F0 1B0 1F1 1B1
    device 2: 0F0 0F1 0B0 0B1
    device 3: 1F0 1B0 1F1 1B1
    """
    return Replicated(schedule, replicas)


def costs_of_all(costs: Costs, mesh: Mesh) -> Costs:
    """Return the costs of every rank of a mesh: those of one pipeline are repeated for each replica.

    >>> costs_of_all(Costs(forward=[1, 2], backward=3), Mesh(stages=2, replicas=2)).forward
    array([1., 2., 1., 2.])
    """
    if costs.devices in (None, mesh.size):
        return costs
    if costs.devices != mesh.stages:
        wanted = f"one value, one for each of the {mesh.stages} devices of a pipeline, or one for each of the {mesh.size} ranks"
        raise HybridLabError(f"the costs are for {costs.devices} devices: give {wanted}")
    return costs.repeated(mesh.replicas)


def holders(schedule: Schedule, replicas: int) -> Ints:
    """Return the ranks that hold the weights of each stage, shape (stages, replicas x copies): those that average its gradients.

    They stand replica by replica, and copy by copy within a replica. Raises :class:`HybridLabError` where two copies of a
    stage are on one device.

    >>> from hybridlab.schedules import build
    >>> holders(build("chimera", devices=2, microbatches=2), replicas=2).tolist()
    [[0, 1, 2, 3], [1, 0, 3, 2]]
    """
    paths = np.array(schedule.paths)
    for stage, held in enumerate(np.sort(paths, axis=0).T):
        twice = held[1:][np.diff(held) == 0]
        if twice.size:
            told = f"device {twice[0]} holds stage {stage} in two copies of the weights"
            raise HybridLabError(f"{told}: gradients are averaged between devices, so let each copy of a stage have a device of its own")
    ranks = paths.T[:, None] + schedule.devices * np.arange(whole_number(replicas, "replicas"))[:, None]
    return fixed(ranks.reshape(schedule.stages, -1))
