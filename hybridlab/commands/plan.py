"""The command ``plan``: the fastest plans of a model on a cluster."""

from pathlib import Path
from typing import Any

import click

from hybridlab.commands.shared import given, table_option, text_table, write_text
from hybridlab.course.grading.command_line import json_option, main, print_results, report_errors, with_examples
from hybridlab.errors import HybridLabError
from hybridlab.hardware import GPUS, gpu
from hybridlab.model import Transformer
from hybridlab.planner import search

HEADS = {
    "seconds": "seconds",
    "tflops_per_gpu": "TFLOP/s",
    "memory_gb": "GB",
    "tensor": "tensor",
    "pipeline": "pipeline",
    "data": "data",
    "microbatch": "microbatch",
    "chunks": "chunks",
    "recompute": "recompute",
    "sequence_parallel": "sequence",
}


@main.command(
    "plan",
    epilog=with_examples(
        "plan --layers 96 --hidden 12288 --heads 96 --gpus 512 --gpu A100-SXM4-80GB",
        "plan --config config.json --gpus 64 --global-batch 512 --most 5 --json",
    ),
)
@click.option("--config", type=click.Path(path_type=Path), help="The config.json of a published model, in place of its sizes.")
@click.option("--layers", type=int, help="The number of transformer layers.")
@click.option("--hidden", type=int, help="The hidden size.")
@click.option("--heads", type=int, help="The attention heads of a layer.")
@click.option("--vocabulary", type=int, help="The size of the vocabulary.")
@click.option("--sequence", type=int, help="The tokens of a sample.")
@click.option("--gpus", type=int, required=True, help="The number of GPUs.")
@click.option("--gpu", "name", default="H100-SXM5-80GB", show_default=True, help=f"The kind of GPU: {', '.join(GPUS)}.")
@click.option("--global-batch", type=int, help="The samples of one step. One for each GPU, but at least 512, if left out.")
@click.option("--efficiency", type=float, help="The share of the peak that matrix products reach.")
@click.option("--most", type=click.IntRange(1), default=10, show_default=True, help="The most plans to print.")
@table_option
@json_option
@report_errors
def plan_model(
    config: Path | None, layers: int | None, hidden: int | None, heads: int | None, vocabulary: int | None, sequence: int | None, gpus: int,
    name: str, global_batch: int | None, efficiency: float | None, most: int, table: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Search for the fastest plans of a model on a cluster: the degrees of tensor, pipeline and data parallelism.

    The times are predictions for the software of 2021, and only plans that fit in the memory of the GPUs are printed. --csv writes all of
    them.
    """
    model = _model(config, sequence, given(layers=layers, hidden=hidden, heads=heads, vocabulary=vocabulary))
    found = search(model, gpus, gpu(name), global_batch, **given(efficiency=efficiency))
    rows = found.to_rows(most)
    results: dict[str, Any] = {"gpu": found.profile.name, "gpus": gpus, "tried": found.tried, "fit": len(found), "plans": rows}
    step = f"a step has {rows[0]['global_batch']:,} samples"
    first = f"{len(found):,} of {found.tried:,} plans fit on {gpus:,} x {found.profile.name}; {step}"
    shown = [{column: str(value) if isinstance(value, bool) else _short(value) for column, value in row.items()} for row in rows]
    print_results(results, f"{first}\n{text_table(shown, HEADS)}", as_json)
    write_text(table, found.to_csv)


def _model(config: Path | None, sequence: int | None, sizes: dict[str, Any]) -> Transformer:
    """Return the model of a file, or of these sizes."""
    if config is None:
        if missing := [f"--{size}" for size in ("layers", "hidden", "heads") if size not in sizes]:
            raise HybridLabError(f"give the sizes of the model ({', '.join(missing)}), or its file with --config", "missing-argument")
        return Transformer(**sizes, **given(sequence=sequence))
    if sizes:
        raise HybridLabError(f"{config} has the sizes of the model: leave {', '.join(f'--{size}' for size in sizes)} out", "two-ways")
    return Transformer.from_config(config, sequence)


def _short(value: Any) -> Any:
    """Return a number with the digits that a prediction has."""
    return f"{value:.4g}" if isinstance(value, float) else value
