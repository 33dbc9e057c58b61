"""Test that the schedule of a whole mesh is the schedule of one pipeline, once for each replica."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from misuse import outcome, usual_or_junk
from profiles import examples
from strategies import Size, crossing_orders, sizes

from hybridlab import REGISTRY, Costs, Mesh, Op, Schedule, build, simulate
from hybridlab.step.replicas import Replicated, holders, replicate

TWO = build("1f1b", 2, 2)


@in_turn("name", sorted(REGISTRY))
@examples(30)
@given(data=st.data())
def test_every_rank_runs_the_order_of_its_device(name: str, data: st.DataObject) -> None:
    size = data.draw(sizes(name))
    replicas = data.draw(st.integers(1, 4))
    schedule = size.build()
    everyone = replicate(schedule, replicas)
    mesh = Mesh(size.devices, replicas)
    assert (everyone.devices, everyone.chunks, everyone.stages) == (mesh.size, schedule.chunks, schedule.stages)
    assert (everyone.microbatches, everyone.name, everyone.mesh) == (schedule.microbatches, schedule.name, mesh)
    for rank, order in enumerate(everyone.orders):
        assert order == schedule.orders[mesh.coordinates(rank).stage]
    rows = np.arange(everyone.kind.size)
    within = everyone.source < 0
    assert (everyone.device[everyone.source] // size.devices == everyone.device // size.devices)[~within].all()
    for row in rows[~within].tolist():
        assert everyone.ops[everyone.source[row]] in everyone.needs(everyone.ops[row])
    assert everyone.messages.tolist() == schedule.messages.tolist() * replicas


@examples(60)
@given(schedule=sizes().map(Size.build) | crossing_orders(), replicas=st.integers(1, 4))
def test_holders_are_the_ranks_that_run_a_stage(schedule: Schedule, replicas: int) -> None:
    """Each rank is there once, replica by replica; the ranks of one replica are in the order of the copies."""
    ranks = holders(schedule, replicas)
    everyone = replicate(schedule, replicas)
    assert ranks.shape == (schedule.stages, replicas * schedule.copies)
    for stage, row in enumerate(ranks.tolist()):
        assert sorted(row) == sorted({device for device, order in enumerate(everyone.orders) if any(op.stage == stage for op in order)})
        for place, rank in enumerate(row):
            replica, copy = divmod(place, schedule.copies)
            mine = schedule.copy_of.tolist().index(copy)
            home = next(device for device, order in enumerate(schedule.orders) if Op.parse(f"{stage}F{mine}") in order)
            assert rank == everyone.mesh.rank(stage=home, replica=replica)


@examples(60)
@given(data=st.data(), replicas=st.integers(1, 4))
def test_a_rank_takes_the_time_of_its_device(data: st.DataObject, replicas: int) -> None:
    """Costs have one value, or one value per rank; a slow rank slows only its own pipeline."""
    size = data.draw(sizes())
    schedule = size.build()
    everyone = replicate(schedule, replicas)
    one, all_of_them = (simulate(each, Costs(forward=3, backward=5, p2p=0.25)) for each in (schedule, everyone))
    assert all_of_them.start.tolist() == one.start.tolist() * replicas
    assert all_of_them.peak_activations.tolist() == one.peak_activations.tolist() * replicas
    slow = data.draw(st.integers(0, size.devices * replicas - 1))
    forward = np.full(size.devices * replicas, 3.0)
    forward[slow] = 7
    timeline = simulate(everyone, Costs(forward=forward, backward=5, p2p=0.25))
    for replica, ends in enumerate(timeline.end.reshape(replicas, -1)):
        mine = forward.reshape(replicas, -1)[replica]
        assert ends.tolist() == simulate(schedule, Costs(forward=mine, backward=5, p2p=0.25)).end.tolist()


def test_it_prints_and_compares_like_a_schedule() -> None:
    everyone = replicate(TWO, 2)
    assert str(everyone).splitlines() == [*str(TWO).splitlines(), "device 2: 0F0 0F1 0B0 0B1", "device 3: 1F0 1B0 1F1 1B1"]
    assert repr(everyone) == "<Replicated 1f1b: 4 devices, 2 microbatches, 1 chunk, 2 replicas>"
    assert everyone == replicate(TWO, 2)
    assert hash(everyone) == hash(replicate(TWO, 2))
    assert everyone != replicate(TWO, 3)
    assert everyone != TWO != replicate(TWO, 1)
    assert [str(op) for op in everyone.needs(Op.parse("0B0"))] == ["0F0", "1B0"]


@in_turn("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])  # noqa: S301 - our own bytes
def test_copies_are_alike_and_cannot_be_changed(again: Callable[[Any], Any]) -> None:
    everyone = again(replicate(TWO, 2))
    assert everyone == replicate(TWO, 2)
    assert everyone.devices == 4
    with pytest.raises(ValueError, match="read-only"):
        everyone.source[0] = 3
    for name in ("replicas", "source"):
        with pytest.raises(FrozenInstanceError):
            setattr(everyone, name, 3)


def test_refusals() -> None:
    for replicas in (0, -2, 1.5, None, True):
        with refusal("too-small" if replicas in (0, -2) else "not-a-whole-number", "replicas"):
            replicate(TWO, replicas)  # type: ignore[arg-type]
    for schedule in (replicate(TWO, 2), "1f1b", None):
        with refusal("not-a-schedule", "Schedule"):
            replicate(schedule, 2)  # type: ignore[arg-type]
    with refusal("two-copies-on-a-device", "device 1", "stage 1"):
        holders(Schedule.parse("0F0 2F1 2B1 0B0\n1F1 1F0 1B1 1B0\n0F1 2F0 2B0 0B1"), 2)
    with refusal("too-small", "replicas"):
        holders(TWO, 0)
    with refusal("too-large", "10,000,000"):
        replicate(TWO, 6_000_000)
    with refusal("too-large", "replicas", "memory"):
        replicate(build("1f1b", 1, 1000), 100_000)


@examples(150)
@given(schedule=usual_or_junk([TWO, build("zb-h1", 2, 2)]), replicas=usual_or_junk([1, 2, 3]))
def test_junk(schedule: Any, replicas: Any) -> None:
    replicas = min(replicas, 1000) if isinstance(replicas, int) else replicas
    everyone = outcome(replicate, schedule, replicas)
    assert everyone is None or isinstance(everyone, Replicated)


def test_a_mesh_is_no_schedule_and_has_no_text_or_csv_to_read() -> None:
    everyone = replicate(TWO, 2)
    assert not isinstance(everyone, Schedule)
    assert not {"parse", "from_csv", "to_csv", "from_slots"} & set(dir(everyone))
