"""The mesh view: the devices of K stages and D replicas, and whom each of them sends to."""

from collections.abc import Callable, Mapping
from itertools import pairwise, product
from typing import Any

import anywidget
import numpy as np
import traitlets

from hybridlab.errors import HybridLabError
from hybridlab.inputs import counted, known_name, shown, whole_number
from hybridlab.mesh import Mesh
from hybridlab.widgets.grid import digest
from hybridlab.widgets.pipeline import Data
from hybridlab.widgets.view import with_shared

SETTING = ("stages", "replicas", "rank")
MOST = 12  # stages, or replicas, of a mesh that can be drawn
KINDS = (
    {"name": "activations", "letter": "A", "words": "activations", "why": "to the next stage"},
    {"name": "gradients", "letter": "G", "words": "gradients of activations", "why": "to the stage before"},
    {"name": "ring", "letter": "R", "words": "ring messages", "why": "to the same stage of the next replica"},
)


class Refused(HybridLabError, traitlets.TraitError):
    """A setting that a view does not have; being a TraitError too, it takes back what was set together with it."""


class OfGrid(traitlets.TraitType[Any, Any]):
    """A trait that takes one of the sizes that a view was made with, and refuses the rest in this library's words."""

    def validate(self, obj: Any, value: Any) -> Any:
        name, sizes = str(self.name), obj.data[self.name]
        number = _refusing(whole_number, value, name)
        if number not in sizes:
            raise Refused(f"this view has no mesh with {name} = {number}: choose from {', '.join(map(str, sizes))}")
        return number


class Ranked(traitlets.TraitType[Any, Any]):
    """A trait that takes a whole number of zero or more; the view sees to it that it is a rank of its mesh."""

    def validate(self, obj: Any, value: Any) -> Any:
        return _refusing(whole_number, value, str(self.name), at_least=0)


class MeshView(anywidget.AnyWidget):
    """A picture of a mesh: choose a rank, and see its pipeline, its stage group, and whom it sends to and receives from.

    ``stages`` and ``replicas`` are the sizes to choose from: one each, or several, at most 12. ``microbatches`` is their
    number in one step of a pipeline; it counts the messages. ``show`` is what to begin with, such as
    ``{"stages": 3, "replicas": 4, "rank": 5}``; what it leaves out begins at the first value.

    All meshes are in ``data``, as :class:`Mesh` says, so that the picture answers without a kernel. The traits ``stages``,
    ``replicas`` and ``rank`` follow the controls, and can be observed and set. A rank that a smaller mesh lacks becomes 0.
    Raises :class:`HybridLabError` for sizes that are not in the grid and for ranks that are not in the mesh.

    >>> view = MeshView(stages=(2, 3), replicas=(1, 4), show={"stages": 3, "replicas": 4})
    >>> view  # doctest: +ELLIPSIS
    <MeshView: 4 sizes, data ...; 3 stages, 4 replicas, rank 0>
    >>> view.rank = 5
    >>> view.place
    Place(stage=2, replica=1)
    """

    _esm = with_shared("mesh_words.js", "mesh_picture.js", "mesh_view.js")
    _css = with_shared("mesh_view.css")

    data = traitlets.Dict(read_only=True).tag(sync=True)
    stages = OfGrid().tag(sync=True)
    replicas = OfGrid().tag(sync=True)
    rank = Ranked(0).tag(sync=True)

    def __init__(
        self,
        stages: Any = (1, 2, 3, 4),
        replicas: Any = (1, 2, 3, 4),
        *,
        microbatches: int = 6,
        show: Mapping[str, Any] | None = None,
    ) -> None:
        data = mesh_data(_sizes(stages, "stages"), _sizes(replicas, "replicas"), microbatches)
        if not isinstance(show, Mapping | None):
            raise HybridLabError(f'show is a mesh and a rank to begin with, such as {{"stages": 3}}, not {shown(show)}')
        asked = {known_name(name, SETTING, "part of a setting"): value for name, value in (show or {}).items()}
        self._digest = digest(data)
        self.set_trait("data", data)
        super().__init__(**({"stages": data["stages"][0], "replicas": data["replicas"][0], "rank": 0} | asked))

    @property
    def place(self) -> Any:
        """The stage and the replica of the chosen rank."""
        return Mesh(self.stages, self.replicas).coordinates(self.rank)

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what a view sends; what is refused is answered with what holds."""
        try:
            super().set_state(sync_data)
        except HybridLabError:
            self.send_state(SETTING)
            raise

    @traitlets.validate("rank")
    def _in_mesh(self, proposal: Any) -> int:
        rank: int = proposal["value"]
        _refusing(Mesh(self.stages, self.replicas).coordinates, rank)
        return rank

    @traitlets.observe("stages", "replicas")
    def _follow(self, _: Any) -> None:
        if self.rank >= Mesh(self.stages, self.replicas).size:
            self.rank = 0

    def __repr__(self) -> str:
        """Return the same text for the same grid and setting, whatever the run: stored outputs are compared by it."""
        meshes = counted(len(self.data["meshes"]), "size")
        sizes = f"{counted(self.stages, 'stage')}, {counted(self.replicas, 'replica')}"
        return f"<MeshView: {meshes}, data {self._digest}; {sizes}, rank {self.rank}>"


def mesh_data(stages: list[int], replicas: list[int], microbatches: int) -> Data:
    """Return what a view draws: the places, groups and links of every mesh, and what travels on them.

    >>> mesh_data([2], [1], 6)["meshes"]["2/1"]["links"]
    [['activations', 0, 1, 6], ['gradients', 1, 0, 6]]
    """
    count = whole_number(microbatches, "microbatches")
    meshes = {f"{size[0]}/{size[1]}": _entry(Mesh(*size), count) for size in product(stages, replicas)}
    return {"stages": stages, "replicas": replicas, "microbatches": count, "kinds": list(KINDS), "meshes": meshes}


def _entry(mesh: Mesh, microbatches: int) -> Data:
    """Return [stage, replica] of every rank; pipelines and stage groups; links: [kind, sender, receiver, messages a step]."""
    pipelines = [mesh.pipeline(replica) for replica in range(mesh.replicas)]
    groups = [mesh.stage_group(stage) for stage in range(mesh.stages)]
    links: list[list[Any]] = []
    for ranks in pipelines:
        for before, after in pairwise(ranks):
            links += [["activations", before, after, microbatches], ["gradients", after, before, microbatches]]
    for stage in range(mesh.stages):
        links += [["ring", sender, receiver, 2 * (mesh.replicas - 1)] for sender, receiver in mesh.ring(stage)]
    return {
        "places": [list(mesh.coordinates(rank)) for rank in range(mesh.size)],
        "pipelines": [list(ranks) for ranks in pipelines],
        "groups": [list(ranks) for ranks in groups],
        "links": links,
    }


def _refusing(read: Callable[..., Any], *values: Any, **limits: Any) -> Any:
    try:
        return read(*values, **limits)
    except HybridLabError as why:
        raise Refused(str(why)) from None


def _sizes(value: Any, name: str) -> list[int]:
    """Return one size or several, sorted, each once."""
    one = not isinstance(value, (list, tuple, range, set, frozenset, np.ndarray)) or (isinstance(value, np.ndarray) and value.ndim == 0)
    several = [value] if one else value
    sizes = sorted({whole_number(each, name, at_most=MOST) for each in several})
    if not sizes:
        raise HybridLabError(f"{name} is empty: give one number, or a few to choose from")
    return sizes
