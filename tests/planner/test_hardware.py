"""Compare profiles of GPUs with the figures of the reference, unit by unit, and test the roofline with both of its limits."""

import json
import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal

from hybridlab import hardware
from hybridlab.collectives import A100_LINKS, all_reduce_time, bus_bandwidth, measured_time
from hybridlab.hardware import A100_40GB, A100_80GB, B200, B300, GB200, GB300, GPUS, H100, H200, V100, Profile, each_way, gigabits, gpu

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "hardware.json").read_text(encoding="utf-8"))
RULES = {  # a name in the reference: the field, and how many SI units are one unit of the reference
    "fp16_tensor_tflops": ("matmul_flops", 1e12),
    "bf16_tensor_tflops": ("matmul_flops", 1e12),
    "fp32_tflops": ("fp32_flops", 1e12),
    "fp8_tensor_tflops": ("fp8_flops", 1e12),
    "hbm_gb": ("memory", 1e9),
    "hbm_gbps": ("memory_bandwidth", 1e9),
    "nvlink_per_direction_gbps": ("nvlink", 1e9),
    "nccl_link_model_gbps": ("nccl_nvlink", 1e9),
}
MEASURED = "nccl_all_reduce_busbw_8gpu_1gib_gbps"


def test_every_figure_is_that_of_the_reference() -> None:
    assert list(GPUS)[:6] == list(REFERENCE["gpus"])
    for name, figures in REFERENCE["gpus"].items():
        known = {RULES[key][0]: value * RULES[key][1] for key, value in figures.items() if key not in ("source", MEASURED)}
        for field in {field for field, _ in RULES.values()}:
            ours = getattr(GPUS[name], field)
            assert ours == (pytest.approx(known[field], rel=1e-12) if field in known else None), (name, field)


def test_links_are_those_of_the_reference() -> None:
    fabric = REFERENCE["fabric"]
    for generation in ("edr", "hdr", "ndr"):
        assert getattr(hardware, f"INFINIBAND_{generation.upper()}") == 1e9 * fabric[f"infiniband_{generation}_port_gbps"]
    for generation, figure in fabric["pcie_x16_per_direction_gbps"].items():
        assert getattr(hardware, f"PCIE_{generation.upper()}") == 1e9 * figure
    assert "8 HDR ports = 200 GB/s per node" in fabric["dgx_a100_node"]
    assert A100_80GB.node_network == 200e9


def test_all_reduces_of_eight_gpus_reach_the_measured_bus_bandwidth() -> None:
    reached = bus_bandwidth("all-reduce", 8, 2**30, measured_time(8, 2**30))
    assert reached == pytest.approx(1e9 * REFERENCE["gpus"][A100_80GB.name][MEASURED], rel=3e-3)


@in_turn("ranks", A100_LINKS)
def test_both_fits_of_the_measured_all_reduces_agree_on_large_messages(ranks: int) -> None:
    """The measurements are not in the repository: `make outside` holds each fit against them."""
    nbytes = np.array([2.0**26, 2.0**28, 2.0**30])
    assert all_reduce_time("ring", ranks, nbytes, A100_LINKS[ranks]) == pytest.approx(measured_time(ranks, nbytes), rel=0.05)


def test_what_the_reference_has_from_memory_says_that_it_is_not_confirmed() -> None:
    for name, figures in REFERENCE["gpus"].items():
        assert "memory)" not in figures["source"] or "not confirmed" in GPUS[name].source
        assert "from memory" not in figures["source"] or "not confirmed" in GPUS[name].source


def test_the_nodes_of_each_generation() -> None:
    """The rate of a node is its number of ports x the rate of a port.

    There are four EDR ports in a DGX-1, eight HDR in a DGX A100, and eight NDR from the H100 on. A rack of 72 GPUs is one node. Each of its
    GPUs has an NDR port, or an XDR port of twice the rate.
    """
    assert [each.node_network for each in GPUS.values()] == [50e9, 200e9, 200e9, 400e9, 400e9, 400e9, 3600e9, 7200e9, 800e9]
    assert [each.nvlink_total for each in GPUS.values()] == [300e9, 600e9, 600e9, 900e9, 900e9, 1800e9, 1800e9, 1800e9, 1800e9]
    assert list(GPUS.values()) == [V100, A100_40GB, A100_80GB, H100, H200, B200, GB200, GB300, B300]


@in_turn("profile, rack_or_node", [
    (GB200, {"matmul_flops": 360e15 / 2, "fp8_flops": 720e15 / 2, "memory": 13.4e12, "memory_bandwidth": 576e12, "nvlink_total": 130e12}),
    (GB300, {"matmul_flops": 360e15 / 2, "fp8_flops": 720e15 / 2, "memory": 20e12, "memory_bandwidth": 576e12, "nvlink_total": 130e12}),
    (B300, {"matmul_flops": 36e15 / 2, "fp8_flops": 72e15 / 2, "nvlink_total": 14.4e12}),
])  # fmt: skip
def test_a_gpu_is_its_share_of_what_is_sold_as_a_rack(profile: Profile, rack_or_node: dict[str, float]) -> None:
    """Sheets of racks and servers print sums over their GPUs, those of tensor cores with sparsity."""
    for field, total in rack_or_node.items():
        assert profile.gpus_per_node * getattr(profile, field) == pytest.approx(total, rel=5e-3), field


def test_bits_and_directions() -> None:
    assert (gigabits(200), gigabits(8), each_way(600e9)) == (25e9, 1e9, 300e9)


def test_both_readings_of_the_report_that_are_wrong() -> None:
    """No A100 has 16 GB, and none has 500 GB/s, one way or both ways.

    200 GB/s is the rate of a node and not of a port. 312 TFLOP/s is right.
    """
    assert not {each.memory for each in GPUS.values() if "A100" in each.name} & {16e9}
    assert 500e9 not in (A100_80GB.nvlink, A100_80GB.nvlink_total)
    assert (A100_80GB.network, A100_80GB.node_network, A100_80GB.matmul_flops) == (25e9, 200e9, 312e12)


@in_turn("profile", GPUS.values())
def test_the_roofline_turns_at_the_ridge(profile: Profile) -> None:
    work, ridge = 1e12, 1e12 * profile.matmul_flops / (1e12 * profile.memory_bandwidth)
    assert profile.ridge == pytest.approx(ridge)
    assert profile.roofline(work, work / ridge) == pytest.approx(work / profile.matmul_flops)
    assert profile.roofline(work, 2 * work / ridge) == pytest.approx(2 * work / profile.matmul_flops)
    assert profile.roofline(work, 0) == work / profile.matmul_flops
    assert profile.roofline(0, 0) == 0


def test_rooflines_of_arrays() -> None:
    flops, nbytes = np.geomspace(1, 1e15, 7), np.geomspace(1, 1e13, 5)[:, None]
    seconds = A100_80GB.roofline(flops, nbytes)
    assert seconds.shape == (5, 7)
    for row, moved in enumerate(nbytes[:, 0].tolist()):
        for column, done in enumerate(flops.tolist()):
            assert seconds[row, column] == max(done / 312e12, moved / 2039e9)
    assert isinstance(A100_80GB.roofline(1e12, 1e9), float)


def test_profiles_are_values() -> None:
    own = replace(A100_80GB, network=gigabits(100), gpus_per_node=4)
    assert (own.node_network, A100_80GB.node_network) == (50e9, 200e9)
    assert {own: 1}[replace(own)] == 1
    with pytest.raises(FrozenInstanceError):
        A100_80GB.memory = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        GPUS["mine"] = own  # type: ignore[index]
    assert {type(getattr(own, field.name)) for field in fields(own)} == {str, float, int, type(None)}
    assert isinstance(replace(own, memory=np.int64(10**9)).memory, float)


@in_turn("call, code, words", [
    (lambda: gpu("A100"), "unknown-name", "'A100' 'A100-SXM4-"),
    (lambda: gpu("H200"), "unknown-name", "'H200-SXM-141GB'"),
    (lambda: gpu("a100 40gb"), "unknown-name", "'A100-SXM4-40GB'"),
    (lambda: gpu("A100_80GB"), "unknown-name", "'A100-SXM4-80GB'"),
    (lambda: gpu(None), "unknown-name", "None"),
    (lambda: replace(A100_80GB, memory=0), "too-small", "memory 25e9 0"),
    (lambda: replace(A100_80GB, network=-1), "negative", "network -1"),
    (lambda: replace(A100_80GB, nvlink=math.nan), "not-finite", "nvlink"),
    (lambda: replace(A100_80GB, matmul_flops=math.inf), "not-finite", "matmul_flops"),
    (lambda: replace(A100_80GB, memory_bandwidth=[1e9, 2e9]), "wrong-shape", "memory_bandwidth"),
    (lambda: replace(A100_80GB, matmul_flops=None), "not-a-number", "matmul_flops"),
    (lambda: replace(A100_80GB, fp8_flops=0), "too-small", "fp8_flops 1"),
    (lambda: replace(A100_80GB, efficiency=0), "out-of-range", "efficiency above 0 most 1"),
    (lambda: replace(A100_80GB, efficiency=75), "out-of-range", "efficiency 0.75 75"),
    (lambda: replace(A100_80GB, gpus_per_node=0), "too-small", "gpus_per_node 1 0"),
    (lambda: replace(A100_80GB, name=3), "not-text", "name 3"),
    (lambda: replace(A100_80GB, source=None), "not-text", "source None"),
    (lambda: A100_80GB.roofline(-1, 1), "negative", "flops -1"),
    (lambda: A100_80GB.roofline(1, "many"), "not-a-number", "nbytes"),
    (lambda: A100_80GB.roofline([1, 2], [1, 2, 3]), "does-not-fit", "(2,) (3,)"),
    (lambda: gigabits(-200), "negative", "gigabits"),
    (lambda: each_way("600"), "not-a-number", "total"),
])  # fmt: skip
def test_what_is_no_hardware(call: Callable[[], Any], code: str, words: str) -> None:
    with refusal(code, *words.split()):
        call()
