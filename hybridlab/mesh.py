"""A mesh: where the devices of K stages and D replicas stand, and who talks to whom."""

from dataclasses import dataclass
from typing import NamedTuple

from hybridlab.checks import LARGEST, whole_number
from hybridlab.errors import HybridLabError


class Place(NamedTuple):
    """Where a rank stands: its stage of the model, and the replica of the model it works for."""

    stage: int
    replica: int


@dataclass(frozen=True)
class Mesh:
    """A device for every stage of every replica, numbered replica by replica: rank = replica x stages + stage.

    Activations and their gradients travel along a :meth:`pipeline`, the gradients of the weights around the
    :meth:`ring` of a :meth:`stage_group`. Raises :class:`HybridLabError` for sizes below 1, and for places and ranks
    that are not in the mesh. The layout is that of the published hybrid simulator; other programs number the ranks of a
    stage group one after the other.

    >>> mesh = Mesh(stages=3, replicas=4)
    >>> mesh.size, mesh.rank(stage=1, replica=2), mesh.coordinates(7)
    (12, 7, Place(stage=1, replica=2))
    >>> mesh.stage_group(1), mesh.pipeline(2)
    ((1, 4, 7, 10), (6, 7, 8))
    """

    stages: int
    replicas: int

    def __post_init__(self) -> None:
        for name in ("stages", "replicas"):
            object.__setattr__(self, name, whole_number(getattr(self, name), name))
        if self.size > LARGEST:
            message = f"{self.stages:,} stages x {self.replicas:,} replicas"
            raise HybridLabError(f"{message} are {self.size:,} devices; a mesh has at most {LARGEST:,}")

    @property
    def size(self) -> int:
        """Number of devices."""
        return self.stages * self.replicas

    def rank(self, stage: int, replica: int) -> int:
        """Return the rank of the device that holds ``stage`` of ``replica``."""
        return _place(replica, "replica", self.replicas) * self.stages + _place(stage, "stage", self.stages)

    def coordinates(self, rank: int) -> Place:
        """Return the stage and the replica of ``rank``: the inverse of :meth:`rank`."""
        replica, stage = divmod(_place(rank, "rank", self.size), self.stages)
        return Place(stage, replica)

    def stage_group(self, stage: int) -> tuple[int, ...]:
        """Return the ranks that hold copies of one stage, replica by replica: those that average its gradients."""
        return tuple(range(_place(stage, "stage", self.stages), self.size, self.stages))

    def pipeline(self, replica: int) -> tuple[int, ...]:
        """Return the ranks of one replica, stage by stage."""
        first = _place(replica, "replica", self.replicas) * self.stages
        return tuple(range(first, first + self.stages))

    def ring(self, stage: int) -> tuple[tuple[int, int], ...]:
        """Return (sender, receiver) of every link of a stage's ring; none where one replica has nobody to send to.

        >>> Mesh(stages=3, replicas=4).ring(0)
        ((0, 3), (3, 6), (6, 9), (9, 0))
        """
        group = self.stage_group(stage)
        return tuple(zip(group, (*group[1:], group[0]), strict=True)) if self.replicas > 1 else ()


def _place(value: int, name: str, count: int) -> int:
    """Return ``value`` as an int below ``count``, or refuse it with the places there are."""
    number = whole_number(value, name, at_least=0)
    if number >= count:
        raise HybridLabError(f"there is no {name} {number}: the last one is {count - 1}")
    return number
