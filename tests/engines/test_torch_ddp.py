"""Test torch's DDP beside our ring: two ranks hold the same stage, and each of both averages the same gradients."""

from pathlib import Path
from typing import Any

import missing
import numpy as np
import pytest
import torch_page
from torch_start import ROOT, run_once, run_ranks

from hybridlab import FP16, FP32, INT8, WireFormat, ring_all_reduce

pytestmark = [pytest.mark.torch, pytest.mark.slow]

PAGE = torch_page.cells()
GRADIENTS: Any = PAGE["gradients"]  # shape (2 ranks, parameters)
MEAN = (GRADIENTS[0] + GRADIENTS[1]) / 2


def average(folder: Path) -> None:
    np.save(folder / "gradients.npy", GRADIENTS)
    run_ranks(ROOT / "tests/engines/torch_ddp.py", 2, folder)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = run_once(tmp_path_factory, "torch_ddp", average)
    return [dict(np.load(folder / f"rank{rank}.npz")) for rank in range(2)]


def error(average: Any) -> float:
    """The largest distance from the exact mean."""
    return float(np.abs(average - MEAN).max())


def ring(wire: WireFormat) -> float:
    """The error of our ring."""
    return error(ring_all_reduce(GRADIENTS, wire).values)


def test_ddp_returns_the_mean_on_both_ranks(ranks: list[dict[str, Any]]) -> None:
    for one in ranks:
        assert error(one["plain"]) < 1e-15
        assert error(one["plain of float32"]) < 1e-6
    assert ring(FP32) < 1e-6


def test_the_fp16_hook_errs_as_much_as_our_ring_in_fp16(ranks: list[dict[str, Any]]) -> None:
    hook = error(ranks[0]["fp16"])
    assert error(ranks[1]["fp16"]) == hook
    assert 1 / 3 < hook / ring(FP16) < 3
    assert ring(FP32) * 1000 < min(hook, ring(FP16)), "both have lost digits that FP32 keeps"
    assert max(hook, ring(FP16)) * 10 < ring(INT8)


def test_the_errors_of_torch_on_the_page_are_those_of_the_installed_torch(ranks: list[dict[str, Any]]) -> None:
    measured = {"DDP, FP32": "plain of float32", "DDP, FP16 hook": "fp16"}
    assert PAGE["of_torch"] == pytest.approx({name: error(ranks[0][key]) for name, key in measured.items()}, rel=0.05)


@pytest.mark.parametrize(
    ("hook", "why"),
    [("bf16", "BF16 all reduce communication hook required CUDA"), ("per tensor", "IndexError"), ("per channel", "IndexError")],
)
def test_other_hooks_do_not_work_on_gloo_in_2_13(hook: str, why: str, ranks: list[dict[str, Any]]) -> None:
    """Newer versions of torch have repaired them: the errors are those of the formats, 8 significant bits or 256 steps."""
    for one in ranks:
        if missing.torch_installed() == (2, 13):
            assert why in str(one[f"refused: {hook}"])
        elif hook in one:
            assert ring(FP16) < error(one[hook]) < 2 * ring(INT8)
