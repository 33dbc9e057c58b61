"""The mesh view: it shows the ranks of a mesh with K stages and D replicas, and the messages between the ranks."""

from collections.abc import Mapping
from itertools import pairwise, product
from typing import Any

import traitlets

from hybridlab.checks import counted, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.mesh import Mesh
from hybridlab.widgets.choices import whole_numbers
from hybridlab.widgets.page_data import Data, digest
from hybridlab.widgets.scripts import FromFiles, script_of, style_sheet
from hybridlab.widgets.view import Checked, View, as_trait_error, shown_first

MOST = 12  # largest number of stages or replicas that the view can draw
LINK_KINDS = (
    {"name": "activations", "letter": "A", "words": "activations", "why": "to the next stage"},
    {"name": "gradients", "letter": "G", "words": "gradients of activations", "why": "to the stage before"},
    {"name": "ring", "letter": "R", "words": "ring messages", "why": "to the same stage of the next replica"},
)


class MeshView(View):
    """A view of a mesh. For a chosen rank, the view shows its pipeline, its stage group, and the ranks that exchange messages with it.

    All meshes are in the trait ``data``, so the view works without a running kernel. The traits ``stages``, ``replicas`` and ``rank``
    change with the controls. Python can observe and set them. If a new mesh is too small for the chosen rank, ``rank`` becomes 0.

    Parameters
    ----------
    stages, replicas : int or iterable of int
        The sizes from which the reader chooses, at most 12.
    microbatches : int
        The number of microbatches of a pipeline in one step, which determines the number of messages.
    show : mapping or None
        The first setting, such as ``{"stages": 3, "replicas": 4, "rank": 5}``. Other traits begin at their first value.

    Raises
    ------
    HybridLabError
        A size is not in the grid, or a rank is not in the mesh.

    Examples
    --------
    >>> view = MeshView(stages=(2, 3), replicas=(1, 4), show={"stages": 3, "replicas": 4})
    >>> view  # doctest: +ELLIPSIS
    <MeshView: 4 sizes, data ...; 3 stages, 4 replicas, rank 0>
    >>> view.rank = 5
    >>> view.place
    Place(stage=2, replica=1)
    """

    SETTING = ("stages", "replicas", "rank")
    _esm = FromFiles(script_of, "mesh_view.js")
    _css = FromFiles(style_sheet, "mesh", files=("mesh_view.css",))

    data = traitlets.Dict(read_only=True).tag(sync=True)
    stages = Checked().tag(sync=True)
    replicas = Checked().tag(sync=True)
    rank = Checked(0).tag(sync=True)

    def __init__(
        self,
        stages: Any = (1, 2, 3, 4),
        replicas: Any = (1, 2, 3, 4),
        *,
        microbatches: int = 6,
        show: Mapping[str, Any] | None = None,
    ) -> None:
        data = mesh_data(whole_numbers(stages, "stages", at_most=MOST), whole_numbers(replicas, "replicas", at_most=MOST), microbatches)
        asked = shown_first(show, self.SETTING, '{"stages": 3, "rank": 5}')
        self._digest = digest(data)
        self.set_trait("data", data)
        super().__init__(**({"stages": data["stages"][0], "replicas": data["replicas"][0], "rank": 0} | asked))

    @property
    def place(self) -> Any:
        """The stage and the replica of the chosen rank."""
        return Mesh(self.stages, self.replicas).coordinates(self.rank)

    def checked(self, name: str, value: Any) -> int:
        """Return a size or a rank. Raise an error for a size that the view does not offer, or for a value that is no rank."""
        if name == "rank":
            return whole_number(value, name, at_least=0)
        number, sizes = whole_number(value, name), self.data[name]
        if number not in sizes:
            raise HybridLabError(f"this view has no mesh with {name} = {number}: choose from {', '.join(map(str, sizes))}", "out-of-range")
        return number

    @traitlets.validate("rank")
    def _check_rank(self, proposal: Any) -> int:
        """Return the rank, or raise an error if the mesh does not have it."""
        rank: int = proposal["value"]
        with as_trait_error():
            # Traitlets runs this check after all changes in a message from the page, so the size of the mesh is up to date.
            Mesh(self.stages, self.replicas).coordinates(rank)
        return rank

    @traitlets.observe("stages", "replicas")
    def _follow(self, _: Any) -> None:
        """Choose rank 0 if the new mesh does not contain the chosen rank."""
        if self.rank >= Mesh(self.stages, self.replicas).size:  # a larger mesh contains all ranks of a smaller mesh
            self.rank = 0

    def still(self) -> Any:
        """Return the mesh and the messages of the chosen rank as a figure."""
        from hybridlab.plot.stills import mesh_grid

        return mesh_grid(self.data, self.stages, self.replicas, self.rank)

    def __repr__(self) -> str:
        """Return the number of sizes, the digest of the data and the setting.

        The text is the same in every run, because outputs that are stored in notebooks contain it.
        """
        meshes = counted(len(self.data["meshes"]), "size")
        sizes = f"{counted(self.stages, 'stage')}, {counted(self.replicas, 'replica')}"
        return f"<MeshView: {meshes}, data {self._digest}; {sizes}, rank {self.rank}>"


def mesh_data(stages: list[int], replicas: list[int], microbatches: int) -> Data:
    """Return the data of the view: the places, groups and links of every mesh.

    Parameters
    ----------
    stages, replicas : list of int
        The sizes. The data have a mesh for each pair of sizes.
    microbatches : int
        The number of microbatches of a pipeline in one step.

    Returns
    -------
    dict
        ``meshes`` has an entry for each mesh under the key "stages/replicas". In an entry, ``places`` has [stage, replica] for every rank.
        ``pipelines`` has the list of ranks of each pipeline, and ``groups`` has the list of ranks of each stage. ``links`` has
        [kind, sender, receiver, messages per step] for every link.

    Examples
    --------
    >>> mesh_data([2], [1], 6)["meshes"]["2/1"]["links"]
    [['activations', 0, 1, 6], ['gradients', 1, 0, 6]]
    """
    count = whole_number(microbatches, "microbatches")
    meshes = {f"{size[0]}/{size[1]}": _mesh_entry(Mesh(*size), count) for size in product(stages, replicas)}
    return {"stages": stages, "replicas": replicas, "microbatches": count, "kinds": list(LINK_KINDS), "meshes": meshes}


def _mesh_entry(mesh: Mesh, microbatches: int) -> Data:
    """Return the places, pipelines, stage groups and links of one mesh."""
    pipelines = [mesh.pipeline(replica) for replica in range(mesh.replicas)]
    groups = [mesh.stage_group(stage) for stage in range(mesh.stages)]
    links: list[list[Any]] = []
    for ranks in pipelines:
        for before, after in pairwise(ranks):
            # For each microbatch, neighbouring stages exchange one message forwards and one message backwards.
            links += [["activations", before, after, microbatches], ["gradients", after, before, microbatches]]
    for stage in range(mesh.stages):
        # A ring of D ranks has D - 1 steps of reduce-scatter and D - 1 steps of all-gather. Each link carries one message in each step.
        links += [["ring", sender, receiver, 2 * (mesh.replicas - 1)] for sender, receiver in mesh.ring(stage)]
    return {
        "places": [list(mesh.coordinates(rank)) for rank in range(mesh.size)],
        "pipelines": [list(ranks) for ranks in pipelines],
        "groups": [list(ranks) for ranks in groups],
        "links": links,
    }
