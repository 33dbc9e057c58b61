"""Test what the page "Our schedules in torch" says about torch's pipeline package, against the installed torch."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch_page
from torch_start import ROOT, run_once, run_ranks

from hybridlab import REGISTRY, Costs, InvalidSchedule, Schedule, build, simulate

pytestmark = [pytest.mark.torch, pytest.mark.slow]

PAGE = torch_page.cells()
CLASSES: dict[str, str] = PAGE["CLASSES"]  # the class in torch of each schedule that has one
SIZES = [(2, 4), (3, 6), (4, 8)]  # devices, microbatches; every schedule supports them
ONE_COPY = [name for name, family in REGISTRY.items() if family.copies == 1]
each_class = pytest.mark.parametrize("name", CLASSES)


def case(name: str, devices: int, microbatches: int) -> dict[str, Any]:
    schedule = build(name, devices, microbatches)
    size = {"name": name, "devices": devices, "microbatches": microbatches, "chunks": schedule.chunks}
    return {**size, "csv": schedule.to_csv(), "device_of": schedule.device_of, "torch": CLASSES.get(name, "").removeprefix("Schedule")}


PLANNED = [case(name, *size) for name in CLASSES for size in SIZES]
COUNTED = [case(name, devices, 2 * devices * half) for name in ONE_COPY for devices in (1, 2, 4) for half in (1, 2)]

DEADLOCK = "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n"  # rank 0 waits for 1B0 before it runs 0F1, and rank 1 waits for 0F1 before 1B0


def collect(folder: Path) -> None:
    names = [other for name, family in REGISTRY.items() if name not in CLASSES for other in spellings(name, family.title)]
    asked: dict[str, Any] = {
        "one copy": ONE_COPY,
        "names": names,
        "orders": PLANNED,
        "csv": [case(name, 4, 8) for name in REGISTRY],
        "peaks": COUNTED,
    }
    asked["deadlock"] = case("gpipe", 2, 2) | {"csv": DEADLOCK}
    (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    run_ranks(ROOT / "tests/engines/torch_facts.py", 1, folder)


def spellings(name: str, title: str) -> set[str]:
    """The ways in which torch might write the name of a schedule; it does not mind capital letters."""
    return {name, title, *(each.replace("-", "").replace(" ", "") for each in (name, title))}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = run_once(tmp_path_factory, "torch_facts", collect)
    facts: dict[str, Any] = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    return facts


def test_the_page_knows_all_classes_of_torch_and_no_other(found: dict[str, Any]) -> None:
    assert sorted(found["classes"]) == sorted(CLASSES.values())
    assert {each["class"] for each in found["orders"]} == set(CLASSES.values()), "get_schedule_class finds each of them by its name"


def test_torch_has_no_name_for_the_other_schedules(found: dict[str, Any]) -> None:
    assert found["unknown"]
    for name, why in found["unknown"].items():
        assert f"Unknown schedule name '{name}'" in str(why)


@pytest.mark.parametrize("name", REGISTRY)
def test_torch_loads_our_csv_if_each_stage_is_on_one_rank(name: str, found: dict[str, Any]) -> None:
    why = found["refused"][name]
    if name in ONE_COPY:
        assert why is None
    else:
        assert "is assigned to both rank" in why


@each_class
def test_our_order_is_the_order_of_torch(name: str, found: dict[str, Any]) -> None:
    """There is one exception: the last rank of 1F1B, whose order cannot run."""
    for asked, planned in zip(PLANNED, found["orders"], strict=True):
        if asked["name"] == name:
            ours = [line.split(",") for line in asked["csv"].splitlines()]
            theirs = [[word for word in order if not word.endswith("REDUCE_GRAD")] for order in planned["orders"]]
            last = ours.pop(), theirs.pop()
            assert ours == theirs
            assert (last[0] == last[1]) is (name != "1f1b")


def test_we_read_the_csv_that_torch_writes(found: dict[str, Any]) -> None:
    read = 0
    for asked, planned in zip(PLANNED, found["orders"], strict=True):
        if planned["csv"] is not None:
            ours = build(asked["name"], asked["devices"], asked["microbatches"])
            assert Schedule.parse(planned["csv"], name=ours.name) == ours
            read += 1
    for name, text in found["dumped"].items():
        printed = Schedule.parse(text, name)
        assert printed == build(name, 4, 8)
        assert printed.left_out["SEND_F"] > 0
    assert list(found["dumped"]) == list(ONE_COPY)
    assert read == (len(CLASSES) - 2) * len(SIZES), "gpipe and 1f1b have one stage on a rank, and torch writes no CSV of them"


@pytest.mark.parametrize("name", ONE_COPY)
def test_the_name_on_the_page_places_the_stages_as_we_do(name: str, found: dict[str, Any]) -> None:
    """Programs that use torch place two stages on a rank as one of these two maps of torch says; 1F1B has one."""
    family = REGISTRY[name]
    way, placed = PAGE["way_into_torch"](family)
    assert way == "yes"
    if placed == "1F1B":
        assert family.device_of(4, family.fewest_chunks) == (0, 1, 2, 3)
    else:
        style = {"Interleaved1F1B": "loop", "ZBVZeroBubble": "v"}[placed]
        assert list(family.device_of(4, 2)) == found["placements"][style]


# The pitfalls of the page


def test_the_order_that_torch_tells_for_1f1b_is_wrong_on_the_last_rank(found: dict[str, Any]) -> None:
    planned = next(each for asked, each in zip(PLANNED, found["orders"], strict=True) if (asked["name"], asked["devices"]) == ("1f1b", 4))
    last = planned["orders"][-1]
    assert last[:2] == ["3F1", "3B0"], "microbatch 0 never runs forward"
    assert "3F8" in last, "there are microbatches 0 to 7 only"
    assert "Running Full Backward for stage 3, microbatch 0 without first running Forward" in found["1F1B in the runtime"]


def test_the_orders_that_torch_tells_for_gpipe_and_1f1b_have_reductions_and_no_idle_slots(found: dict[str, Any]) -> None:
    for asked, planned in zip(PLANNED, found["orders"], strict=True):
        single = asked["name"] in ("gpipe", "1f1b")
        assert any(word.endswith("REDUCE_GRAD") for word in planned["orders"][0]) is single
        assert not single or planned["idle on rank 0"] == 0
    assert sum(planned["idle on rank 0"] for planned in found["orders"]) > 0, "others keep them"


def test_the_simulator_of_torch_does_not_know_the_actions_that_torch_adds(found: dict[str, Any]) -> None:
    assert found["simulate"] == "Unsupported action type 0UNSHARD"


def test_stage_0_does_all_of_a_split_backward_in_w(found: dict[str, Any]) -> None:
    first, second = ["0 forward", "1 forward", "1 gradient"], ["0 forward", "1 forward"]
    weights_of_first = ["1 gradient", "0 gradient"]  # 1W0 goes over the layers again, 0W0 for the first time
    second_backward = ["1 gradient", "1 gradient", "0 gradient"]
    assert found["split backward"] == [*first, *second, *weights_of_first, *second_backward]


def test_torch_refuses_an_order_that_waits_for_ever_and_we_tell_where(found: dict[str, Any]) -> None:
    assert found["deadlock"] == "Malformed compute schedule, can't schedule sends/recvs"
    with pytest.raises(InvalidSchedule, match="device 0 stops at 0B0: it waits for 1B0, which is behind 1F1 on device 1"):
        Schedule.parse(DEADLOCK)


def test_looped_bfs_runs_its_backwards_from_the_last_microbatch_to_the_first(found: dict[str, Any]) -> None:
    for asked, planned in zip(PLANNED, found["orders"], strict=True):
        if asked["name"] == "looped-bfs":
            of_stage_0 = [word for word in planned["orders"][0] if word.startswith("0B")]
            assert of_stage_0 == [f"0B{microbatch}" for microbatch in reversed(range(asked["microbatches"]))]


@pytest.mark.torch(since="2.15")
def test_peak_activations_are_those_that_torch_counts(found: dict[str, Any]) -> None:
    """This torch counts stages and microbatches; ours are microbatches of a device with all its chunks."""
    for asked, theirs in zip(COUNTED, found["peaks"], strict=True):
        schedule = build(asked["name"], asked["devices"], asked["microbatches"])
        ours = simulate(schedule, Costs(forward=1, backward=2)).peak_activations
        assert (ours * schedule.chunks).tolist() == theirs, asked["name"]
    assert {asked["name"] for asked in COUNTED} == set(ONE_COPY)
