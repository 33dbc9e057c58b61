"""Test schedules in torch's own pipeline runtime: it runs our CSV, and its gradients equal those of one device.

Nothing in that runtime was written here, so it is a second opinion on the orders, on their CSV, and on the placement of stages.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch_page
from torch_start import ROOT, run_once, run_ranks

from hybridlab import REGISTRY, Schedule, build
from hybridlab.training import Network, loss_and_gradient

pytestmark = [pytest.mark.torch, pytest.mark.slow]

NETWORK = Network((6, 9, 8, 7, 9, 6, 8, 7, 5))  # eight layers, for up to eight stages
SAMPLES = 24  # of a step; 4 and 8 microbatches cut them evenly
TWO_COPIES = [name for name, family in REGISTRY.items() if family.copies == 2]  # a stage is on two ranks, which torch does not have
IN_TORCH = [name for name in REGISTRY if name not in TWO_COPIES]
CLASSES: dict[str, str] = torch_page.cells()["CLASSES"]  # torch's own schedules
SIZES = [(2, 4), (2, 8), (4, 4), (4, 8)]  # devices, microbatches
Results = dict[str, list[dict[str, Any]]]


def cases() -> dict[str, dict[str, Any]]:
    """Each schedule in each size that it supports, torch's own schedules, and controls, which must not give the gradients of one device."""
    found = {}
    for devices, microbatches in SIZES:
        for name in IN_TORCH:
            family = REGISTRY[name]
            if family.refusal(devices, microbatches, family.fewest_chunks) is None:
                found[f"{name} {devices}x{microbatches}"] = case(build(name, devices, microbatches))
    for name, chosen in CLASSES.items():
        found[f"{chosen} 4x8"] = case(build(name, 4, 8)) | {"class": chosen.removeprefix("Schedule")}
    one = build("1f1b", 4, 4)
    found["control: wrong labels"] = case(one) | {"labels": "wrong_labels"}
    found["control: not divided by M"] = case(one) | {"scale_grads": False}
    found["control: no backward"] = case(one) | {"text": one.to_csv().replace(",2B3\n", "\n")}
    found["control: backward first"] = case(one) | {"text": swapped(one.to_csv(), "3F0", "3B0")}
    found["control: weight gradient first"] = case(one) | {"text": swapped(build("zb-h1", 4, 4).to_csv(), "3I0", "3W0")}
    return {name: values | {"name": name, "csv": f"{number}.csv"} for number, (name, values) in enumerate(found.items())}


def swapped(csv: str, one: str, other: str) -> str:
    """A CSV in which two operations have changed places."""
    return csv.replace(one, "?").replace(other, one).replace("?", other)


def case(schedule: Schedule) -> dict[str, Any]:
    """What torch needs to run a schedule; two devices are ranks 0 and 1 for 4 microbatches and 2 and 3 for 8, at the same time."""
    first = 2 if schedule.devices == 2 and schedule.microbatches == 8 else 0
    return {
        "text": schedule.to_csv(),
        "ranks": list(range(first, first + schedule.devices)),
        "device_of": schedule.device_of,
        "microbatches": schedule.microbatches,
        "layers": [list(layers) for layers in NETWORK.stages(schedule.stages)],
        "labels": "labels",
        "scale_grads": True,
        "class": None,  # the order of the CSV
    }


def data() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    labels = rng.integers(NETWORK.sizes[-1], size=SAMPLES)
    wrong = labels.copy()
    wrong[0] = (wrong[0] + 1) % NETWORK.sizes[-1]
    weights = rng.normal(0, 0.7, NETWORK.parameters)
    return {"weights": weights, "inputs": rng.normal(size=(SAMPLES, NETWORK.sizes[0])), "labels": labels, "wrong_labels": wrong}


def run_in_torch(folder: Path) -> None:
    arrays = data()
    for layer, (matrix, bias) in enumerate(NETWORK.unpacked(arrays.pop("weights"))):
        arrays |= {f"matrix{layer}": matrix, f"bias{layer}": bias}
    np.savez(folder / "network.npz", **arrays)
    listed = list(cases().values())
    for values in listed:
        (folder / values["csv"]).write_text(values.pop("text"), encoding="utf-8")
    (folder / "cases.json").write_text(json.dumps(listed), encoding="utf-8")
    run_ranks(ROOT / "tests/engines/torch_runtime.py", 4, folder)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """For each case, the arrays of each of its ranks."""
    folder = run_once(tmp_path_factory, "torch_runtime", run_in_torch)
    found: Results = {name: [{} for _ in values["ranks"]] for name, values in cases().items()}
    for rank in range(4):
        for key, array in np.load(folder / f"rank{rank}.npz").items():
            name, _, what = key.partition("/")
            found[name][rank - cases()[name]["ranks"][0]][what] = array
    return found


def distance(ranks: list[dict[str, Any]]) -> float:
    """The largest difference from the gradients of one device, as a part of the largest number of the tensor."""
    arrays = data()
    _, gradient = loss_and_gradient(NETWORK, arrays["weights"], arrays["inputs"], arrays["labels"])
    together = {what: array for one in ranks for what, array in one.items()}
    parts = []
    for layer, (matrix, bias) in enumerate(NETWORK.unpacked(gradient)):
        for wanted, what in ((matrix, f"matrix{layer}"), (bias, f"bias{layer}")):
            parts.append(np.abs(together[what] - wanted).max() / np.abs(wanted).max())
    return float(max(parts))


@pytest.mark.parametrize("name", IN_TORCH)
def test_torch_runs_our_csv_and_gets_the_gradients_of_one_device(name: str, results: Results) -> None:
    mine = {case: ranks for case, ranks in results.items() if case.split()[0] == name}
    assert len(mine) >= 3, "dualpipe-v needs two microbatches for each device, and all others support all sizes"
    far = {case: distance(ranks) for case, ranks in mine.items()}
    assert max(far.values()) < 1e-12, far


@pytest.mark.parametrize("name", CLASSES.values())
def test_the_own_schedules_of_torch_get_the_same_gradients(name: str, results: Results) -> None:
    """So the network in torch is ours, whoever has made the order; the order that 1F1B runs is not the wrong one that it tells."""
    assert distance(results[f"{name} 4x8"]) < 1e-12


@pytest.mark.parametrize("name", IN_TORCH)
def test_torch_reads_every_operation_of_our_csv(name: str, results: Results) -> None:
    for case, ranks in results.items():
        if case.split()[0] == name:
            devices, microbatches = map(int, case.split()[1].split("x"))
            lines = build(name, devices, microbatches).to_csv().splitlines()
            assert [",".join(one["order"]) for one in ranks] == lines, case


def test_torch_splits_pairs_as_we_do(results: Results) -> None:
    pairs = [word for one in results["dualpipe-v 4x8"] for word in one["order"] if word.endswith("OVERLAP_F_B")]
    assert len(pairs) == build("dualpipe-v", 4, 8).pairs.size > 0


@pytest.mark.parametrize(("control", "least", "most"), [("wrong labels", 1e-3, 10), ("not divided by M", 3 - 1e-9, 3 + 1e-9)])
def test_gradients_of_another_step_are_told_apart(control: str, least: float, most: float, results: Results) -> None:
    """Four times the gradients are away from them by three times their largest number."""
    assert least < distance(results[f"control: {control}"]) < most


@pytest.mark.parametrize(
    ("control", "words"),
    [
        ("no backward", "expected 4 total backwards"),
        ("backward first", "Running Full Backward for stage 3, microbatch 0 without first running Forward"),
        ("weight gradient first", "Running Backward Weight for stage 3, microbatch 0 without first running Backward Input"),
    ],
)
def test_torch_refuses_an_order_that_cannot_run(control: str, words: str, results: Results) -> None:
    for one in results[f"control: {control}"]:
        assert words in str(one["refused"])
        assert "order" not in one
