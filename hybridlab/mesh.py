"""The mesh of ranks: one rank for each stage of each replica, and the groups of ranks that send messages to each other."""

from dataclasses import dataclass
from typing import NamedTuple

from hybridlab.checks import LARGEST, whole_number
from hybridlab.errors import HybridLabError


class Place(NamedTuple):
    """The position of a rank: its pipeline stage and its replica of the model."""

    stage: int
    replica: int


@dataclass(frozen=True)
class Mesh:
    """A mesh of devices: one device for each stage of each replica, with the number rank = replica x stages + stage.

    The ranks of a :meth:`pipeline` send activations and their gradients to each other. The ranks of a :meth:`stage_group` average the
    gradients of the weights over a :meth:`ring`. The published hybrid simulator (``hybridlab.course.published``) numbers ranks in the same
    way. Other programs give consecutive numbers to the ranks of one stage.

    Parameters
    ----------
    stages : int
        Number of pipeline stages K, at least 1.
    replicas : int
        Number of replicas of the pipeline D, at least 1.

    Raises
    ------
    HybridLabError
        A size is not a whole number of at least 1, or the mesh has more than 10,000,000 devices. A method raises an error with the code
        ``out-of-range`` for a stage, a replica or a rank outside the mesh.

    Examples
    --------
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
        if self.size > LARGEST:  # each size is within its limit, but the product is too large for arrays
            message = f"{self.stages:,} stages x {self.replicas:,} replicas"
            raise HybridLabError(f"{message} are {self.size:,} devices; a mesh has at most {LARGEST:,}", "too-large")

    @property
    def size(self) -> int:
        """Number of devices."""
        return self.stages * self.replicas

    def rank(self, stage: int, replica: int) -> int:
        """Return the rank of the device that holds ``stage`` of ``replica``.

        Raises
        ------
        HybridLabError
            The mesh has no such stage, or no such replica.
        """
        return _index(replica, "replica", self.replicas) * self.stages + _index(stage, "stage", self.stages)

    def coordinates(self, rank: int) -> Place:
        """Return the stage and the replica of ``rank``. This is the inverse of :meth:`rank`.

        Raises
        ------
        HybridLabError
            The mesh has no such rank.
        """
        replica, stage = divmod(_index(rank, "rank", self.size), self.stages)  # rank = replica x stages + stage
        return Place(stage, replica)

    def stage_group(self, stage: int) -> tuple[int, ...]:
        """Return the ranks that hold ``stage``, ordered by replica. These ranks average the gradients of the stage.

        Raises
        ------
        HybridLabError
            The mesh has no such stage.
        """
        return tuple(range(_index(stage, "stage", self.stages), self.size, self.stages))

    def pipeline(self, replica: int) -> tuple[int, ...]:
        """Return the ranks of ``replica``, ordered by stage.

        Raises
        ------
        HybridLabError
            The mesh has no such replica.
        """
        first = _index(replica, "replica", self.replicas) * self.stages
        return tuple(range(first, first + self.stages))

    def ring(self, stage: int) -> tuple[tuple[int, int], ...]:
        """Return the links of a stage's ring as pairs (sender, receiver), or () with a single replica.

        Raises
        ------
        HybridLabError
            The mesh has no such stage.

        Examples
        --------
        >>> Mesh(stages=3, replicas=4).ring(0)
        ((0, 3), (3, 6), (6, 9), (9, 0))
        """
        group = self.stage_group(stage)
        # the last rank sends to the first rank; a single rank sends nothing
        return tuple(zip(group, (*group[1:], group[0]), strict=True)) if self.replicas > 1 else ()


def _index(value: int, name: str, count: int) -> int:
    """Return ``value`` as an int. Raise an error if ``value`` is not from 0 to ``count`` - 1."""
    number = whole_number(value, name, at_least=0)
    if number >= count:
        raise HybridLabError(f"there is no {name} {number}: the last one is {count - 1}", "out-of-range")
    return number
