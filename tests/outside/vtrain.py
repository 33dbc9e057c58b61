"""Read the two tables that the vTrain project measured, from a folder beside the repository, and sum up the errors on them."""

import csv
from typing import Any

import numpy as np
from beside import REFERENCE

from hybridlab import Plan, Transformer

ITERATIONS, ALL_REDUCES = REFERENCE / "iteration_times_a100_multi_node.csv", REFERENCE / "allreduce_a100.csv"


def iterations() -> list[tuple[Transformer, Plan, float]]:
    """Return (model, plan, seconds) for each row; in all runs, activations were recomputed and no pipeline was interleaved."""
    found = []
    with ITERATIONS.open(newline="", encoding="utf-8-sig") as lines:
        for row in csv.DictReader(lines):
            sizes = {name: float(value) for name, value in row.items()}
            layers, hidden, heads = (int(sizes[name]) for name in ("# layers", "hidden size", "attention heads"))
            names = ("tensor parallelism", "pipeline parallelism", "data parallelism", "micro batch", "global batch")
            plan = Plan(*(int(sizes[name]) for name in names))
            assert plan.gpus == sizes["# GPUs"]
            model = Transformer(layers, hidden, heads, sequence=int(sizes["sequence length"]))
            found.append((model, plan, sizes["iteration time (ms)"] / 1000))
    return found


def all_reduces(ranks: int) -> tuple[Any, Any]:
    """Return the bytes and the seconds of all measured all-reduces on this number of GPUs."""
    with ALL_REDUCES.open(newline="") as lines:
        rows = [(float(row["bytes"]), float(row["seconds"])) for row in csv.DictReader(lines) if int(row["gpus"]) == ranks]
    return tuple(np.array(rows).T)


def summary(errors: Any) -> tuple[float, ...]:
    """Return the number of errors, then five figures with four digits.

    They are the mean, the median and the largest absolute error, then the lowest and the highest error.
    """
    sizes = np.abs(errors)
    values = (sizes.mean(), np.median(sizes), sizes.max(), errors.min(), errors.max())
    return (errors.size, *(float(f"{value:.4g}") for value in values))
