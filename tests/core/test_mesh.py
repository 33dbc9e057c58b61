"""Test meshes: each rank is numbered once, groups and pipelines cut the mesh in both directions, and rings close."""

from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import outcome, small

from hybridlab import Mesh

meshes = st.builds(Mesh, st.integers(1, 9), st.integers(1, 9))


def test_the_published_layout() -> None:
    """In the published program, ranks are numbered replica by replica, and stage by stage inside a replica.

    The program prints R0(S0) R1(S1) R2(S2) R3(S0) ...
    """
    mesh = Mesh(stages=3, replicas=4)
    assert [mesh.coordinates(rank).stage for rank in range(12)] == [0, 1, 2] * 4
    assert [mesh.coordinates(rank).replica for rank in range(12)] == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert mesh.stage_group(0) == (0, 3, 6, 9)
    assert mesh.pipeline(3) == (9, 10, 11)


@given(mesh=meshes)
def test_every_rank_has_one_place_and_every_place_one_rank(mesh: Mesh) -> None:
    places = [mesh.coordinates(rank) for rank in range(mesh.size)]
    assert len(set(places)) == mesh.size == mesh.stages * mesh.replicas
    assert [mesh.rank(place.stage, place.replica) for place in places] == list(range(mesh.size))


@given(mesh=meshes)
def test_groups_and_pipelines_each_cover_the_mesh_once_and_cross_in_one_rank(mesh: Mesh) -> None:
    groups = [mesh.stage_group(stage) for stage in range(mesh.stages)]
    pipelines = [mesh.pipeline(replica) for replica in range(mesh.replicas)]
    for parts in (groups, pipelines):
        assert sorted(rank for part in parts for rank in part) == list(range(mesh.size))
    for stage, group in enumerate(groups):
        for replica, pipeline in enumerate(pipelines):
            assert set(group) & set(pipeline) == {mesh.rank(stage, replica)}


@given(mesh=meshes)
def test_a_ring_visits_its_whole_group_and_comes_back(mesh: Mesh) -> None:
    for stage in range(mesh.stages):
        next_rank = dict(mesh.ring(stage))
        if mesh.replicas == 1:
            assert not next_rank
            continue
        rank, visited = mesh.rank(stage, 0), []
        for _ in range(mesh.replicas):
            visited.append(rank)
            rank = next_rank[rank]
        assert rank == mesh.rank(stage, 0)
        assert tuple(visited) == mesh.stage_group(stage)


@in_turn(
    "ask, code, words",
    [
        (lambda: Mesh(0, 2), "too-small", "stages 1 0"),
        (lambda: Mesh(2, 2.5), "not-a-whole-number", "replicas 1 2.5"),
        (lambda: Mesh(10**4, 10**4), "too-large", "100,000,000 10,000,000"),
        (lambda: Mesh(3, 4).rank(3, 0), "out-of-range", "stage 3 2"),
        (lambda: Mesh(3, 4).rank(0, 4), "out-of-range", "replica 4 3"),
        (lambda: Mesh(3, 4).coordinates(12), "out-of-range", "rank 12 11"),
        (lambda: Mesh(3, 4).coordinates(-1), "too-small", "rank 0 -1"),
        (lambda: Mesh(3, 4).stage_group(True), "not-a-whole-number", "stage 0 True"),
        (lambda: Mesh(3, 4).pipeline("0"), "not-a-whole-number", "replica 0 '0'"),
        (lambda: Mesh(3, 4).ring(5), "out-of-range", "stage 5 2"),
    ],
)
def test_places_that_are_not_there(ask, code: str, words: str) -> None:
    with refusal(code, *words.split()):
        ask()


@given(stages=small, replicas=small, place=small)
def test_junk(stages: object, replicas: object, place: object) -> None:
    mesh = outcome(Mesh, stages, replicas)
    if mesh is not None and mesh.size < 10**4:
        for method in (mesh.coordinates, mesh.stage_group, mesh.pipeline, mesh.ring):
            outcome(method, place)
        outcome(mesh.rank, place, place)


def test_the_largest_mesh() -> None:
    assert Mesh(10**4, 10**3).size == 10**7
