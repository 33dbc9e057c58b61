"""The command ``run``: run a schedule for real, and compare the measured step with the predicted one."""

import json
from pathlib import Path
from typing import Any

import click

from hybridlab.commands.shared import FILE, about_timeline, times_in, write_text, write_trace
from hybridlab.costs import Costs
from hybridlab.course.grading.command_line import (
    json_option,
    main,
    print_results,
    progress_on_terminal,
    report_errors,
    with_examples,
)
from hybridlab.engines import RunResult, TrainingWork, run
from hybridlab.engines.joined import was_started
from hybridlab.engines.start import ENGINES
from hybridlab.errors import RunFailed
from hybridlab.schedule import Schedule
from hybridlab.schedules import build
from hybridlab.step import HybridStep, hybrid_step
from hybridlab.timeline.chrome import chrome_trace
from hybridlab.training import Network
from hybridlab.training.training import equal_batch
from hybridlab.wire import CODINGS, WireFormat


@main.command(
    "run",
    epilog=with_examples(
        "run --schedule 1f1b --devices 4 --microbatches 8",
        "run --engine mpi --schedule zb-h1 --forward 10,10,15,10 --backward 20 --trace trace.json",
        "run --devices 2 --microbatches 4 --replicas 2 --train --wire INT8 --json",
    ),
)
@click.option("--engine", type=click.Choice(["threads", *ENGINES]), default="threads", show_default=True, help="What runs the ranks.")
@click.option("--schedule", "name", default="1f1b", show_default=True, help="The name of the schedule.")
@click.option("--devices", type=int, default=4, show_default=True, help="The number of devices of one pipeline.")
@click.option("--replicas", type=int, default=1, show_default=True, help="The number of pipelines.")
@click.option("--microbatches", type=int, default=8, show_default=True, help="The number of microbatches.")
@click.option("--chunks", type=int, help="Model chunks on each device. The fewest that the schedule supports if left out.")
@click.option("--forward", callback=times_in, default="10", show_default=True, help="Time of a forward; 10,15 for two devices.")
@click.option("--backward", callback=times_in, default="20", show_default=True, help="Time of a backward.")
@click.option("--p2p", type=float, default=0.0, show_default=True, help="Latency of a message.")
@click.option("--ring-step", type=float, default=0.0, show_default=True, help="Time of one step of a ring all-reduce.")
@click.option("--unit", default="ms", show_default=True, help="The unit of the times: s, ms or us.")
@click.option("--wire", help=f"The wire format of the rings: {', '.join(CODINGS)}. float64 if left out.")
@click.option("--steps", type=int, default=3, show_default=True, help="The number of steps.")
@click.option("--train", is_flag=True, help="Train a small network. Without it, operations only sleep.")
@click.option("--patience", type=float, default=60.0, show_default=True, help="Seconds until a rank counts as hanging.")
@click.option("--trace", type=FILE, help="Write a trace for Perfetto to this file, even of a run that failed.")
@json_option
@report_errors
def run_schedule(
    engine: str, name: str, devices: int, replicas: int, microbatches: int, chunks: int | None, ring_step: float, wire: str | None,
    steps: int, train: bool, patience: float, trace: Path | None, as_json: bool, **times: Any,
) -> None:  # fmt: skip
    """Run a schedule with a thread or a process for each rank. Print the measured time of a step and the predicted time."""
    schedule, costs = build(name, devices, microbatches, chunks), Costs(**times)
    predicted = hybrid_step(schedule, costs, replicas, ring_step=ring_step)
    work = _training(schedule, replicas) if train else None
    with progress_on_terminal(steps, "steps") as advance:
        done = 0

        def progress(now: int, of: int) -> None:
            nonlocal done
            for _ in range(now - done):  # several steps can end between two calls of this function
                advance("step")
            done = now

        try:
            ran = run(
                schedule, work, costs, engine=engine, replicas=replicas, wire=WireFormat(wire.upper()) if wire else None, steps=steps,
                ring_step=ring_step, patience=patience, progress=progress,
            )  # fmt: skip
        except RunFailed as why:
            if trace is not None and why.measured:
                pipeline = devices if replicas > 1 else None
                write_text(trace, json.dumps(chrome_trace(why.measured, 1e6, f"{name}, until it failed", pipeline)))
            raise
    if was_started(engine) and ENGINES[engine].rank(None):
        return  # mpiexec or torchrun has started this program once for each rank, and only rank 0 prints
    first = f"{schedule!r}, {replicas} x {devices} ranks, engine {engine}"
    output = f"\n{ran.output.rstrip()}" if ran.output else ""
    print_results(_results(ran, predicted), f"{first}\n{_summary(ran, predicted)}{output}", as_json)
    write_trace(trace, ran.timeline)


def _training(schedule: Schedule, replicas: int) -> TrainingWork:
    """Return the work of training a small network with at least one layer for each stage."""
    layers = max(2, schedule.stages)
    return TrainingWork(schedule, replicas, network=Network((64, *[32] * (layers - 1), 10)), batch=equal_batch(schedule, replicas))


def _losses(ran: RunResult) -> list[float] | None:
    """Return the loss of each step. None if the operations only slept."""
    if ran.results[0] is None:
        return None
    return [float(sum(each)) for each in zip(*(result.losses for result in ran.results), strict=True)]


def _results(ran: RunResult, predicted: HybridStep) -> dict[str, Any]:
    """Return the measured and the predicted step, the makespan of every step, and the losses."""
    return {
        "measured": about_timeline(ran.timeline),
        "predicted": about_timeline(predicted.timeline) | {"makespan": predicted.makespan},
        "makespans": [each.makespan for each in ran.timelines],
        "losses": _losses(ran),
        "output": ran.output,
    }


def _summary(ran: RunResult, predicted: HybridStep) -> str:
    """Return lines of text that compare the measured steps with the predicted step."""
    measured, unit = [float(each.makespan) for each in ran.timelines], ran.timeline.unit
    middle, ideal = float(ran.timeline.makespan), float(predicted.makespan)
    lines = [f"measured {middle:.1f} {unit} (median of {len(measured)} steps, {min(measured):.1f} to {max(measured):.1f})"]
    lines += [f"predicted {ideal:.1f} {unit}" + (f": the measured step is longer by {middle / ideal - 1:.1%}" if ideal else "")]
    lines += [f"bubble ratio measured {ran.timeline.bubble_ratio:.3f}, predicted {predicted.timeline.bubble_ratio:.3f}"]
    if (losses := _losses(ran)) is not None:
        lines += [f"loss {losses[0]:.4f} in the first step, {losses[-1]:.4f} in the last"]
    return "\n".join(lines)
