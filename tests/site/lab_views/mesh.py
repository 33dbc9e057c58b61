"""Check that a mesh view shows the right boxes, arrows, sentences and table for the setting of its controls."""

import re
from collections import Counter
from typing import Any

import numpy as np
from playwright.sync_api import Locator

from hybridlab import Mesh
from lab_views.kind import Kind, rows_of, setting_of, with_no_data

MICROBATCHES = 6  # the same as in the lab
WORDS = {"activations": "activations", "gradients": "gradients of activations", "ring": "ring messages"}
TOLD = re.compile(r"(gradients of activations|activations|ring messages) (to|from) rank (\d+)")
SHOWN = """(root) => {
  const size = ({ x, y, width, height }) => [x, y, x + width, y + height];
  const points = (path) => [...path.getAttribute("d").matchAll(/(-?[\\d.]+) (-?[\\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]);
  const arrows = [...root.querySelectorAll(".picture .link")].map((line) => ({
    kind: line.classList[1], own: line.classList.contains("own"), from: points(line)[0], to: points(line.nextElementSibling)[0],
  }));
  const boxes = [...root.querySelectorAll(".device")];
  return {
    arrows, boxes: boxes.map((box) => size(box.querySelector("rect").getBBox())),
    words: boxes.map((box) => [box.textContent, box.getAttribute("aria-label"), box.getAttribute("aria-checked")]),
    letters: [...root.querySelectorAll(".letter")].map((letter) => letter.classList[1]),
    bands: Object.fromEntries([...root.querySelectorAll(".band")].map((band) => [band.classList[1], size(band.getBBox())])),
    told: root.querySelector(".told").textContent, groups: root.querySelector(".groups").textContent,
  };
}"""


def links_of(mesh: Mesh) -> list[tuple[str, int, int]]:
    """Return (kind, sender, receiver) for every message of a mesh, computed only from its numbers of stages and replicas."""
    ranks = [(replica * mesh.stages + stage, stage, replica) for replica in range(mesh.replicas) for stage in range(mesh.stages)]
    links = [("activations", rank, rank + 1) for rank, stage, _ in ranks if stage < mesh.stages - 1]
    links += [("gradients", receiver, sender) for _, sender, receiver in links]
    if mesh.replicas > 1:
        links += [("ring", rank, (replica + 1) % mesh.replicas * mesh.stages + stage) for rank, stage, replica in ranks]
    return links


def nearest(boxes: Any, point: Any) -> int:
    """Return the rank whose box is nearest to a point."""
    low, high = np.array(boxes)[:, :2], np.array(boxes)[:, 2:]
    return int(np.linalg.norm(np.maximum(0, np.maximum(low - point, np.array(point) - high)), axis=1).argmin())


def is_right(view: Locator, _: Any = None) -> None:
    setting, shown = setting_of(view), view.evaluate(SHOWN)
    mesh, rank = Mesh(int(setting["Stages, K"]), int(setting["Replicas, D"])), int(setting.get("Rank", 0))
    stage, replica = mesh.coordinates(rank)
    pipeline, group = mesh.pipeline(replica), mesh.stage_group(stage)
    named = [(each, *mesh.coordinates(each)) for each in range(mesh.size)]
    assert shown["words"] == [
        [f"{each}", f"rank {each}, stage {column}, replica {row}", "true" if each == rank else "false"] for each, column, row in named
    ]
    columns, rows = (sorted({box[axis] for box in shown["boxes"]}) for axis in (0, 1))
    assert [(columns.index(x), rows.index(y)) for x, y, *_ in shown["boxes"]] == [(column, row) for _, column, row in named]
    for name, ranks in (("pipeline", pipeline), ("group", group)):
        left, top, right, bottom = shown["bands"][name]
        inside = [each for each, (x, y, u, v) in enumerate(shown["boxes"]) if left <= x and u <= right and top <= y and v <= bottom]
        assert inside == list(ranks)

    links = links_of(mesh)
    drawn = Counter((arrow["kind"], *(nearest(shown["boxes"], arrow[end]) for end in ("from", "to"))) for arrow in shown["arrows"])
    assert drawn == Counter(link for link in links if set(link[1:]) <= set(pipeline) or set(link[1:]) <= set(group))
    own = [link for link in links if rank in link[1:]]
    assert Counter(arrow["kind"] for arrow in shown["arrows"] if arrow["own"]) == Counter(kind for kind, *_ in own)
    assert Counter(shown["letters"]) == Counter(kind for kind, *_ in own)

    assert shown["told"].startswith(f"Rank {rank} is stage {stage} of replica {replica}.")
    to = [(WORDS[kind], "to", str(receiver)) for kind, sender, receiver in own if sender == rank]
    came = [(WORDS[kind], "from", str(sender)) for kind, sender, receiver in own if receiver == rank]
    assert Counter(TOLD.findall(shown["told"])) == Counter(to + came)
    assert ("It sends nothing." in shown["told"], "there is no ring" in shown["told"]) == (not to, mesh.replicas == 1)
    ranked = [list(map(int, re.findall(r"\d+", part))) for part in shown["groups"].split(".")[:2]]
    assert ranked == [list(pipeline), list(group)]
    counts = {"activations": MICROBATCHES, "gradients": MICROBATCHES, "ring": 2 * (mesh.replicas - 1)}
    for cells, (kind, words) in zip(rows_of(view), WORDS.items(), strict=True):
        receivers = [receiver for each, sender, receiver in own if each == kind and sender == rank]
        senders = [sender for each, sender, receiver in own if each == kind and receiver == rank]
        who = [f"rank {ranks[0]}" if ranks else "nobody" for ranks in (receivers, senders)]
        assert cells == [f"{words[0].upper()} {words}", *who, str(counts[kind] * len(receivers))]


def without_meshes(state: Any) -> None:
    del state["data"]["meshes"]


def without_a_rank(state: Any) -> None:
    state["data"]["meshes"]["3/4"]["links"][0][2] = 99


def with_a_ring_that_turns_back(state: Any) -> None:
    for entry in state["data"]["meshes"].values():
        entry["links"] = [[kind, *(reversed(ends) if kind == "ring" else ends), count] for kind, *ends, count in entry["links"]]


def with_too_many_messages(state: Any) -> None:
    for entry in state["data"]["meshes"].values():
        entry["links"] = [[*link, count + 1] for *link, count in entry["links"]]


def with_ranks_counted_by_stage(state: Any) -> None:
    for name, entry in state["data"]["meshes"].items():
        replicas = int(name.split("/")[1])
        entry["places"] = [[rank // replicas, rank % replicas] for rank in range(len(entry["places"]))]


def with_another_group(state: Any) -> None:
    for entry in state["data"]["meshes"].values():
        entry["groups"] = entry["groups"][1:] + entry["groups"][:1]


KIND = Kind(
    "mesh",
    "MeshView",
    "labs/lab01_mesh.html",
    is_right,
    damages=(without_meshes, without_a_rank, with_no_data),
    faults=(with_a_ring_that_turns_back, with_too_many_messages, with_ranks_counted_by_stage, with_another_group),
    python=("rank", 7),
)
