"""Read the measured runs that stay outside of the repository, from a folder beside it, in the form of those inside."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
from beside import REFERENCE

from hybridlab.course.comparisons import measured_runs
from hybridlab.course.comparisons.measured_runs import MeasuredRun
from hybridlab.hardware import INFINIBAND_HDR

ITERATIONS, ALL_REDUCES = REFERENCE / "iteration_times_a100_multi_node.csv", REFERENCE / "allreduce_a100.csv"
MULTI_NODE, NANOTRON = "A100, 64 to 512 GPUs, vTrain", "H100, Llama 1B and 8B, nanotron, 1 to 8 nodes"
A100_40GB, A100, H100 = "A100-SXM4-40GB", "A100-SXM4-80GB", "H100-SXM5-80GB"
Row = dict[str, Any]


@cache
def read(name: str) -> Mapping[str, Any]:
    """Return the content of a file of measured runs."""
    content: Mapping[str, Any] = json.loads((REFERENCE / "measured" / f"{name}.json").read_text(encoding="utf-8"))
    return content


# GPT models of the vTrain project: its columns, and ours
VTRAIN = {
    "# layers": "layers",
    "hidden size": "hidden",
    "attention heads": "heads",
    "sequence length": "sequence",
    "tensor parallelism": "tensor",
    "pipeline parallelism": "pipeline",
    "data parallelism": "data",
    "micro batch": "microbatch",
    "global batch": "global_batch",
}


def vtrain(rows: Any) -> Iterator[Row]:
    """Yield the rows of a table of vTrain. In all runs, activations were recomputed and no pipeline was interleaved."""
    for row in rows:
        sizes = {ours: int(float(row[theirs])) for theirs, ours in VTRAIN.items()}
        name = f"GPT of {sizes['layers']} layers, hidden size {sizes['hidden']}"
        yield {**sizes, "model": name, "gpu": A100, "seconds": float(row["iteration time (ms)"]) / 1000}


def multi_node() -> Iterator[Row]:
    """Yield the 109 runs on 64 to 512 GPUs. A node has four network ports."""
    with ITERATIONS.open(newline="", encoding="utf-8-sig") as lines:
        yield from ({**row, "network": 4 * INFINIBAND_HDR / 8} for row in vtrain(csv.DictReader(lines)))


# which kernels the runs of Hagemann et al. have, by their names for them
KERNELS = {
    "torch": ("unfused", "eager"),
    "fused": ("unfused", "fused"),
    "flash_attentionv1.0.8": ("fused", "eager"),
    "flash_attention2": ("fused", "eager"),
    "flash_attention2 + RMS kernel": ("fused", "eager"),
}


def hagemann(ran: bool = True, kernels: str | None = None) -> Iterator[Row]:
    """Yield the runs of Hagemann et al., those that ran or those that had not enough memory. The latter have 0 seconds."""
    for row in read("hagemann_a100")["rows" if ran else "not_run"]:
        if kernels not in (None, row["kernel"]):
            continue
        attention, others = KERNELS[row["kernel"]]
        yield (
            {name: row[name] for name in ("layers", "hidden", "heads", "ffn")}
            | {"gated": True, "tied": False, "vocabulary": row["vocab"], "sequence": row["seq"]}
            | {"model": "Llama 13B", "gpu": A100, "remark": row["kernel"], "seconds": row.get("seconds", 0.0)}
            | {"tensor": row["tp"], "pipeline": row["pp"], "data": row["dp"], "microbatch": row["mbs"], "global_batch": row["gbs"]}
            | {"recompute": "full" if row["checkpoint"] == "every_layer" else "none"}
            | {"sequence_parallel": bool(row["sp"]) and row["tp"] > 1}
            | {"attention": attention, "kernels": others, "zero": int(row["dp"] > 1)}
        )


def nanotron_stages(shape: Mapping[str, Any], stages: int) -> tuple[int, ...]:
    """Return the layers of each stage as nanotron cuts a model: a stage takes blocks until it has its share of the computation.

    A layer counts the numbers of its matrices, 4 h^2 + 3 h ffn, and the head counts h V.
    """
    h, layers = shape["hidden"], shape["layers"]
    layer = (4 * h + 3 * shape["ffn"]) * h
    total, found = layers * layer + h * shape["vocab"], [0] * stages
    stage = 0
    for place in range(layers):
        found[stage] += 1
        stage += (place + 1) * layer * stages > total * (stage + 1)
    return tuple(found)


def nanotron(ran: bool = True, nodes: tuple[int, ...] = (1, 2, 4, 8)) -> Iterator[Row]:
    """Yield the runs of the Ultra-Scale Playbook, those with a result or those without. The latter have 0 seconds."""
    table = read("hf_ultrascale_h100")
    for row in table["rows"]:
        if row["nodes"] not in nodes or "doubt" in row or (row["tokens_per_s_gpu"] is not None) != ran:
            continue
        shape = table["shapes"][row["model"]]
        yield (
            {name: shape[name] for name in ("layers", "hidden", "heads", "ffn")}
            | {"gated": True, "tied": bool(shape["tied"]), "vocabulary": shape["vocab"], "sequence": shape["seq"]}
            | {"model": row["model"], "gpu": H100}
            | {"tensor": row["tp"], "pipeline": row["pp"], "data": row["dp"], "microbatch": row["mbs"], "global_batch": row["gbs"]}
            | {"recompute": "none", "sequence_parallel": row["tp"] > 1, "zero": row["zero"] if row["dp"] > 1 else 0}
            | {"attention": "fused", "kernels": "eager", "gradients": "fp32", "overlap": "backward"}
            | ({"stage_layers": nanotron_stages(shape, row["pp"])} if row["pp"] > 1 else {})
            | ({"tokens": row["tokens_per_s_gpu"], "gb": row["memory_gb"]} if ran else {"seconds": 0.0})
        )


# layers, hidden size and heads of MPT models
MPT = {"7b": (32, 4096, 32), "13b": (40, 5120, 40), "30b": (48, 7168, 56), "70b": (80, 8192, 64)}
GPUS = {"a100_40gb": A100_40GB, "a100_80gb": A100, "h100_80gb": H100}


def llm_foundry() -> Iterator[Row]:
    """Yield the runs of llm-foundry of 7 billion parameters and more. All of them shard weights, gradients and optimiser."""
    for row in read("llm_foundry")["rows"]:
        if row["Model"] not in MPT:
            continue
        layers, hidden, heads = MPT[row["Model"]]
        gpus, batch = int(row["# GPUs"]), int(row["GlobalBatchSize"])
        yield (
            {"layers": layers, "hidden": hidden, "heads": heads, "vocabulary": 50368, "sequence": int(row["SeqLen (T)"])}
            | {"model": f"MPT {row['Model']}", "gpu": GPUS[row["GPU"]], "remark": f"{row['SeqLen (T)']} tokens", "modern": True}
            | {"tensor": 1, "pipeline": 1, "data": gpus, "microbatch": int(row["MicroBatchSize"]), "global_batch": batch}
            | {"zero": 3 if row["Sharding Strategy"] == "FULL_SHARD" else 2, "kernels": "eager"}
            | {"recompute": "full" if row["Activation Checkpointing"] == "True" else "none"}
            | {"gradients": "bf16" if row["MP Mode"] == "PURE" else "fp32"}
            | {"precision": "fp8" if row["Precision"] == "amp_fp8" else "bf16"}
            | {"tokens": float(row["Throughput (T/s)"]) / gpus}
        )


GROUPS: dict[str, Callable[[], Iterator[Row]]] = {
    MULTI_NODE: multi_node,
    "A100, one node, vTrain": lambda: vtrain(read("vtrain_single_node")["rows"]),
    "A100, Llama 13B, RMS kernel": lambda: hagemann(kernels="flash_attention2 + RMS kernel"),
    "A100, Llama 13B, RMS kernel, tensor 8": lambda: (
        row for row in hagemann(kernels="flash_attention2 + RMS kernel") if row["tensor"] == 8
    ),
    "A100, Llama 13B, other kernels": lambda: (row for row in hagemann() if row["remark"] != "flash_attention2 + RMS kernel"),
    "FSDP, llm-foundry, 7B and larger": llm_foundry,
    NANOTRON: nanotron,
    "H100, Llama 1B and 8B, nanotron, tensor and pipeline on 16 to 64 nodes": lambda: (
        row for row in nanotron(nodes=(16, 32, 64)) if min(row["tensor"], row["pipeline"]) > 1
    ),
    "H100, Llama 1B and 8B, nanotron, tensor over nodes": lambda: (
        row for row in nanotron(nodes=(2, 4, 8, 16, 32, 64)) if row["tensor"] > 8
    ),
}


def groups() -> tuple[str, ...]:
    """Return the names of the groups."""
    return tuple(GROUPS)


def rows(group: str) -> Iterator[Row]:
    """Yield each row of a group, with the columns of the measured runs inside."""
    return GROUPS[group]()


def run_of(group: str, row: Row) -> MeasuredRun:
    """Return the run of a row."""
    shape = ("layers", "hidden", "heads", "ffn", "gated", "tied", "vocabulary")
    return measured_runs.run_of(group, row, {row["model"]: {name: row[name] for name in shape if name in row}})


def runs(group: str) -> tuple[MeasuredRun, ...]:
    """Return the measured runs of a group."""
    return tuple(run_of(group, row) for row in rows(group))


def all_reduces(ranks: int) -> tuple[Any, Any]:
    """Return the bytes and the seconds of all measured all-reduces on this number of GPUs."""
    with ALL_REDUCES.open(newline="") as lines:
        found = [(float(row["bytes"]), float(row["seconds"])) for row in csv.DictReader(lines) if int(row["gpus"]) == ranks]
    return tuple(np.array(found).T)


def summary(errors: Any) -> tuple[float, ...]:
    """Return the number of errors, then five figures with four digits.

    They are the mean, the median and the largest absolute error, then the lowest and the highest error.
    """
    sizes = np.abs(errors)
    values = (sizes.mean(), np.median(sizes), sizes.max(), errors.min(), errors.max())
    return (errors.size, *(float(f"{value:.4g}") for value in values))
