"""Test that the mesh view agrees with the published layout and with counting.

It must also refuse bad values, and print the same text in every run.
"""

import contextlib
import json
import re
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import junk, refused_and_unchanged
from profiles import examples

from hybridlab import HybridLabError, Mesh
from hybridlab.course import published
from hybridlab.widgets import MeshView, mesh_view
from hybridlab.widgets.mesh_view import MOST, mesh_data

Entry = dict[str, Any]
counts = st.integers(1, MOST)


def entry(stages: int, replicas: int, microbatches: int = 6) -> Entry:
    found: Entry = mesh_data([stages], [replicas], microbatches)["meshes"][f"{stages}/{replicas}"]
    return found


def neighbours(stages: int, replicas: int) -> dict[str, set[tuple[int, int]]]:
    """Return the pairs of sender and receiver, found by rolling an array of ranks, without any code of ``Mesh``."""
    ranks = np.arange(stages * replicas).reshape(replicas, stages)
    pairs = list(zip(ranks[:, :-1].ravel().tolist(), ranks[:, 1:].ravel().tolist(), strict=True))
    ring = zip(ranks.ravel().tolist(), np.roll(ranks, -1, axis=0).ravel().tolist(), strict=True)
    around = set(ring) if replicas > 1 else set()
    return {"activations": set(pairs), "gradients": {(after, before) for before, after in pairs}, "ring": around}


@given(counts, counts)
def test_everybody_sends_to_the_neighbours_that_a_rolled_array_shows(stages: int, replicas: int) -> None:
    links = entry(stages, replicas)["links"]
    for kind, pairs in neighbours(stages, replicas).items():
        found = [(sender, receiver) for name, sender, receiver, _ in links if name == kind]
        assert len(found) == len(pairs)
        assert set(found) == pairs


@given(counts, counts, st.integers(1, 100))
def test_the_messages_of_a_step_are_as_many_as_by_counting(stages: int, replicas: int, microbatches: int) -> None:
    sent: Counter[str] = Counter()
    for kind, _, _, count in entry(stages, replicas, microbatches)["links"]:
        sent[kind] += count
    assert sent["activations"] == sent["gradients"] == replicas * (stages - 1) * microbatches
    assert sent["ring"] == stages * replicas * 2 * (replicas - 1)


@given(counts, counts)
def test_places_and_groups_are_those_of_an_array_of_ranks(stages: int, replicas: int) -> None:
    ranks = np.arange(stages * replicas).reshape(replicas, stages)
    found = entry(stages, replicas)
    assert found["pipelines"] == ranks.tolist()
    assert found["groups"] == ranks.T.tolist()
    assert [ranks[replica, stage] for stage, replica in found["places"]] == list(range(stages * replicas))


def test_the_published_mesh_is_drawn_as_it_was_printed() -> None:
    found = entry(stages=3, replicas=4)
    header = str(published.step_grid()).splitlines()[0]
    printed = [(int(rank), int(stage)) for rank, stage in re.findall(r"R(\d+)\(S(\d+)\)", header)]
    assert [(rank, stage) for rank, (stage, _) in enumerate(found["places"])] == printed
    ring = [(sender, receiver) for kind, sender, receiver, _ in found["links"] if kind == "ring" and sender % 3 == 1]
    assert ring == [(1, 4), (4, 7), (7, 10), (10, 1)]
    assert sum(count for kind, *_, count in found["links"] if kind == "ring") == 2160 / 30  # the program's bytes, in messages of 30


@in_turn("stages, replicas", [(1, 1), (1, 4), (3, 1)])
def test_small_meshes_have_no_links_to_nobody(stages: int, replicas: int) -> None:
    kinds = {kind for kind, *_ in entry(stages, replicas)["links"]}
    assert kinds == ({"activations", "gradients"} if stages > 1 else set()) | ({"ring"} if replicas > 1 else set())


def test_a_ring_that_goes_the_wrong_way_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Mesh.ring
    monkeypatch.setattr(Mesh, "ring", lambda self, stage: tuple(link[::-1] for link in ring(self, stage)))
    found = {(sender, receiver) for kind, sender, receiver, _ in entry(3, 4)["links"] if kind == "ring"}
    assert found != neighbours(3, 4)["ring"]


def test_the_grid_has_every_combination_and_is_small_json() -> None:
    view = MeshView(stages=range(1, MOST + 1), replicas=range(1, MOST + 1))
    assert set(view.data["meshes"]) == {f"{k}/{d}" for k, d in product(range(1, MOST + 1), repeat=2)}
    text = json.dumps(view.data, allow_nan=False)
    assert json.loads(text) == view.data
    assert len(text) < 1_000_000


def test_kinds_differ_without_colour() -> None:
    style = str(MeshView._css)
    dashes = [re.search(rf"\.link\.{kind['name']} \{{([^}}]*)\}}", style) for kind in mesh_view.LINK_KINDS]
    lines = [re.search(r"stroke-dasharray: ([\d ]+)", found[1]) if found else None for found in dashes]
    assert len({line and line[1] for line in lines}) == 3
    assert len({kind["letter"] for kind in mesh_view.LINK_KINDS}) == 3


# ---- the setting ----


def small(**changes: Any) -> MeshView:
    arguments: dict[str, Any] = {"stages": (2, 3), "replicas": (1, 4)} | changes
    return MeshView(**arguments)


def test_a_view_begins_where_it_is_told() -> None:
    view = small(show={"stages": 3, "replicas": 4, "rank": 11})
    assert (view.stages, view.replicas, view.rank, view.place) == (3, 4, 11, (2, 3))
    assert repr(small()).endswith("; 2 stages, 1 replica, rank 0>")


def test_a_rank_that_a_smaller_mesh_lacks_becomes_0() -> None:
    view = small(show={"stages": 3, "replicas": 4, "rank": 7})
    view.stages = 2
    assert view.rank == 7
    view.replicas = 1
    assert view.rank == 0


def test_observers_follow_the_page() -> None:
    view = small()
    seen: list[tuple[str, int]] = []
    view.observe(lambda change: seen.append((change["name"], change["new"])), list(MeshView.SETTING))
    view.set_state({"rank": 11, "stages": 3, "replicas": 4})  # a message from the page sets them in this way, in any order
    assert sorted(seen) == [("rank", 11), ("replicas", 4), ("stages", 3)]


@in_turn(
    "trait, value, code, word",
    [
        ("stages", 5, "out-of-range", "stages = 5: choose from 2, 3"),
        ("stages", 0, "too-small", "stages"),
        ("replicas", "four", "not-a-whole-number", "'four'"),
        ("replicas", True, "not-a-whole-number", "True"),
        ("rank", 2, "out-of-range", "no rank 2: the last one is 1"),
        ("rank", -1, "too-small", "rank"),
        ("rank", 0.5, "not-a-whole-number", "rank"),
    ],
)
def test_what_the_mesh_does_not_have_is_refused_and_changes_nothing(trait: str, value: Any, code: str, word: str) -> None:
    refused_and_unchanged(small, trait, value, code, word)


@in_turn(
    "arguments, code, word",
    [
        ({"stages": ()}, "empty", "stages"),
        ({"stages": (2, 0)}, "too-small", "stages"),
        ({"stages": np.array(0)}, "too-small", "stages"),
        ({"stages": np.array([[2, 3]])}, "not-a-whole-number", "array([2, 3])"),
        ({"stages": "3"}, "not-a-whole-number", "'3'"),
        ({"replicas": 13}, "too-large", "at most 12, not 13"),
        ({"replicas": range(1, 10**9)}, "too-large", "replicas has more than 1,000 values"),
        ({"microbatches": 0}, "too-small", "microbatches"),
        ({"show": 3}, "wrong-type", "show"),
        ({"show": {"stage": 2}}, "unknown-name", "'stages'"),
        ({"show": {"stages": 4}}, "out-of-range", "2, 3"),
        ({"show": {"rank": 2}}, "out-of-range", "no rank 2: the last one is 1"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], code: str, word: str) -> None:
    with refusal(code, word):
        small(**arguments)


@examples(60)
@given(st.dictionaries(st.sampled_from(["stages", "replicas", "microbatches", "show"]), junk, max_size=3))
def test_junk_is_refused_or_drawn(arguments: dict[str, Any]) -> None:
    with contextlib.suppress(HybridLabError):
        json.dumps(small(**arguments).data, allow_nan=False)


# ---- text and script ----


def test_the_text_changes_with_the_data_and_with_the_rank() -> None:
    text = repr(small(show={"rank": 1}))
    assert re.fullmatch(r"<MeshView: 4 sizes, data [0-9a-f]{8}; 2 stages, 1 replica, rank 1>", text)
    assert repr(small(microbatches=7)) != repr(small())


def test_the_script_has_no_rule_of_ranks() -> None:
    script = str(MeshView._esm).replace("100%", "")  # the width of a frame
    assert not re.search(r"[\w)\]]\s*%|rank\s*[-+*/]|[-+*/]\s*(\w+\.)?rank\b", script)
