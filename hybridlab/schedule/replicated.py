"""The operations of several equal pipelines side by side, as one object."""

from dataclasses import dataclass

import numpy as np

from hybridlab.arrays import readonly
from hybridlab.checks import counted
from hybridlab.mesh import Mesh
from hybridlab.schedule.schedule import Operations, Schedule


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Replicated(Operations):
    """The orders of all ranks in a mesh whose replicas all run the same schedule. ``hybridlab.step.replicate`` returns this object.

    With K devices in one pipeline, device d of replica r is rank r x K + d. ``device`` holds these ranks. ``paths``, ``copy_of``,
    ``stages``, ``chunks`` and ``microbatches`` describe one pipeline. The arrays hold the operations of replica 0, then of replica 1, and
    so on. A ``Replicated`` is not a :class:`Schedule`, because in a schedule each operation runs only once.
    """

    replicas: int = 1

    @property
    def devices(self) -> int:
        """Number of devices of the whole mesh."""
        return super().devices * self.replicas

    @property
    def mesh(self) -> Mesh:
        """The mesh of all ranks. It has one stage for each device of a pipeline, even if the device holds several chunks."""
        return Mesh(super().devices, self.replicas)

    def __eq__(self, other: object) -> bool:
        """Return whether both objects have the same name, orders, overlapped pairs and number of replicas."""
        return isinstance(other, Replicated) and (self.replicas, self._key()) == (other.replicas, other._key())

    def __hash__(self) -> int:
        return hash((self.replicas, self._key()))

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {counted(self.replicas, 'replica')}>"


def side_by_side(schedule: Schedule, replicas: int) -> Replicated:
    """Return the operations of ``replicas`` pipelines that all run ``schedule``. ``hybridlab.step.replicate`` has checked the arguments."""
    size = schedule.kind.size
    replica = np.arange(replicas)[:, None]
    tables = {column: np.repeat(getattr(schedule, column)[None], replicas, axis=0) for column in ("kind", "stage", "microbatch", "slot")}
    tables["device"] = schedule.device + replica * schedule.devices
    tables["source"] = np.where(schedule.source >= 0, schedule.source + replica * size, -1)
    arrays = {column: readonly(table).ravel() for column, table in tables.items()}
    fields = {name: getattr(schedule, name) for name in ("name", "microbatches", "paths", "copy_of")}
    # The class is frozen and has no __init__, so its fields can be set only with object.__setattr__.
    result = object.__new__(Replicated)
    for name, value in {**fields, **arrays, "replicas": replicas}.items():
        object.__setattr__(result, name, value)
    return result
