"""Commands of ``hybridlab`` for measured times: rank, schedule, trace and run. The commands of the course are in another file."""

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from hybridlab.automatic import rank, schedule_for
from hybridlab.costs import Costs
from hybridlab.course.grading.cli import main, progress_on_terminal, report_errors
from hybridlab.engines import RunResult, TrainingWork, run
from hybridlab.engines.joined import was_started
from hybridlab.engines.start import ENGINES
from hybridlab.errors import HybridLabError, RunFailed
from hybridlab.schedule import Schedule
from hybridlab.schedules import build
from hybridlab.simulation import simulate
from hybridlab.step import HybridStep, hybrid_step
from hybridlab.timeline import Timeline
from hybridlab.timeline.chrome import chrome_trace
from hybridlab.training import Network
from hybridlab.training.training import equal_batch
from hybridlab.wire import CODINGS, WireFormat

__all__ = ["main"]

PER = click.Choice(["device", "stage"])


def of_times(command: Callable[..., None]) -> Any:
    """Return a command that reads measured times from a file.

    The command adds the shared argument TIMES and the shared options. It calls ``command`` with the costs from the file and with the
    other options as keyword arguments. It prints errors as sentences.
    """

    @report_errors
    @wraps(command)
    def run(times: Path, per: str, unit: str, **named: Any) -> None:
        command(Costs.from_csv(times, per=per, unit=unit), **named)

    # The help lists the options in the reverse order of this loop: a decorator that is applied later comes first.
    for option in (
        click.option("--seconds", default=10.0, show_default=True, help="Effort of each search; 1 is about one second on one CPU core."),
        click.option("--devices", type=int, help="The number of devices, if the times are per stage or the same for all."),
        click.option("--unit", default="ms", show_default=True, help="The unit of the times: s, ms or us."),
        click.option("--per", type=PER, default="device", show_default=True, help="Whether each column belongs to a device or to a stage."),
        click.option("--memory", type=float, help="The most activations, in microbatches, that a device may hold. No limit if left out."),
        click.option("--microbatches", required=True, type=int, help="The number of microbatches."),
        click.argument("times", type=click.Path(path_type=Path)),
    ):
        run = option(run)
    return run


@main.command("rank")
@click.option("--csv", "table", type=click.Path(path_type=Path), help="Write the table to this file.")
@click.option("--plot", "picture", type=click.Path(path_type=Path), help="Draw time against memory into this file, such as rank.png.")
@of_times
def rank_times(costs: Costs, table: Path | None, picture: Path | None, **sizes: Any) -> None:
    """Rank the known schedules for the measured times in the CSV file TIMES. Also rank schedules made for these times.

    TIMES has a column for each device or stage, and rows such as forward, backward and p2p.
    """
    found = rank(costs, **sizes)
    click.echo(repr(found))
    if table is not None:
        _write(table, found.to_csv())
    if picture is not None:
        try:
            found.plot().savefig(picture)
        except ImportError:
            message = "a figure comes from matplotlib, which is not installed: pip install 'hybridlab[labs]'"
            raise HybridLabError(message, "not-installed") from None
        except (OSError, ValueError) as why:
            raise HybridLabError(f"{picture} cannot be written: {why}", "not-written") from None
        click.echo(f"{picture}: written", err=True)


@main.command("schedule")
@click.option("--chunks", type=click.IntRange(1, 2), default=1, show_default=True, help="Model chunks on each device.")
@click.option("--split/--no-split", default=True, show_default=True, help="Whether backwards may be split.")
@click.option("--csv", "table", type=click.Path(path_type=Path), help="Write the orders for torch.distributed.pipelining to this file.")
@click.option("--trace", type=click.Path(path_type=Path), help="Write a trace for Perfetto to this file.")
@of_times
def schedule_times(costs: Costs, table: Path | None, trace: Path | None, **sizes: Any) -> None:
    """Make a schedule for the measured times in the CSV file TIMES, and print the order of each device.

    Press Ctrl-C to end the search. The command then prints and writes the best schedule that it has found.
    """
    found = schedule_for(costs, **sizes)
    click.echo(str(found))
    click.echo(f"{found.makespan:.6g} {costs.unit}: {found.summary}", err=True)
    if table is not None:
        _write(table, found.to_csv())
    if trace is not None:
        _write(trace, json.dumps(simulate(found, costs).to_chrome_trace()))


@main.command("trace")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--pattern", help="For traces of other programs: a regular expression with the groups kind, stage and microbatch.")
@click.option("--step", type=int, help="Which step to read, from 0, if the trace has several.")
@click.option("--shift-clocks", is_flag=True, help="Shift the clocks of ranks if their times disagree.")
@click.option("--per", type=PER, default="device", show_default=True, help="Whether --costs has the times of a device or of a stage.")
@click.option("--weight-share", default=0.5, show_default=True, help="The weight gradient's share of the time of a full backward.")
@click.option("--costs", "table", type=click.Path(path_type=Path), help="Write the times to this file, for rank and schedule.")
@click.option("--csv", "orders", type=click.Path(path_type=Path), help="Write the orders for torch.distributed.pipelining to this file.")
@report_errors
def trace_files(
    files: tuple[Path, ...],
    pattern: str | None,
    step: int | None,
    shift_clocks: bool,
    per: str,
    weight_share: float,
    table: Path | None,
    orders: Path | None,
) -> None:
    """Print how the ranks spent the time of a training step. FILES are traces of the step.

    FILES are (1) the traces of torch.profiler, one for each rank; (2) a folder with such traces; or (3) a trace of another program.
    """
    path = files[0] if len(files) == 1 else files  # a single path can be a folder or a pattern such as *.json
    timeline = Timeline.from_chrome_trace(path, pattern=pattern, step=step, shift_clocks=shift_clocks)
    where = timeline.breakdown()
    click.echo(repr(timeline.schedule))
    click.echo(f"makespan {timeline.makespan:.6g} {timeline.unit}, idle {timeline.bubble_ratio:.1%}")
    click.echo(f"peak activations of each device: {', '.join(f'{peak:g}' for peak in timeline.peak_activations)} microbatches")
    click.echo("\n".join(repr(where).splitlines()[1:]))
    click.echo(" ".join(str(each.op) for each in where.critical_path))
    if table is not None:
        _write(table, Costs.from_timeline(timeline, per=per, weight_share=weight_share).to_csv())
    if orders is not None:
        if not isinstance(timeline.schedule, Schedule):
            raise HybridLabError(
                "this trace has several pipelines, but --csv writes the orders of one: give the files of one pipeline", "several-replicas"
            )
        _write(orders, timeline.schedule.to_csv())


def _given_times(context: click.Context, option: click.Parameter, value: str) -> float | list[float]:
    """Return one time as a number, or several times as a list. Commas separate the times."""
    try:
        numbers = [float(each) for each in value.split(",")]
    except ValueError:
        message = f"{value!r} is not a time: give a number such as 10, or one for each device such as 10,10,15,10"
        raise click.BadParameter(message, context, option) from None
    return numbers[0] if len(numbers) == 1 else numbers


@main.command("run")
@click.option("--engine", type=click.Choice(["threads", "mpi", "torch"]), default="threads", show_default=True, help="What runs the ranks.")
@click.option("--schedule", "name", default="1f1b", show_default=True, help="The name of the schedule.")
@click.option("--stages", "devices", type=int, default=4, show_default=True, help="The number of devices of one pipeline.")
@click.option("--replicas", type=int, default=1, show_default=True, help="The number of pipelines.")
@click.option("--microbatches", type=int, default=8, show_default=True, help="The number of microbatches.")
@click.option("--chunks", type=int, help="Model chunks on each device. The fewest that the schedule supports if left out.")
@click.option("--forward", callback=_given_times, default="10", show_default=True, help="Time of a forward; 10,15 for two devices.")
@click.option("--backward", callback=_given_times, default="20", show_default=True, help="Time of a backward.")
@click.option("--p2p", type=float, default=0.0, show_default=True, help="Latency of a message.")
@click.option("--ring-step", type=float, default=0.0, show_default=True, help="Time of one step of a ring all-reduce.")
@click.option("--unit", default="ms", show_default=True, help="The unit of the times: s, ms or us.")
@click.option("--wire", type=click.Choice(list(CODINGS), case_sensitive=False), help="The wire format of the rings. float64 if left out.")
@click.option("--steps", type=int, default=3, show_default=True, help="The number of steps.")
@click.option("--train", is_flag=True, help="Train a small network. Without it, operations only sleep.")
@click.option("--patience", type=float, default=60.0, show_default=True, help="Seconds until a rank counts as hanging.")
@click.option("--trace", type=click.Path(path_type=Path), help="Write a trace for Perfetto, even of a run that failed.")
@report_errors
def run_schedule(
    engine: str, name: str, devices: int, replicas: int, microbatches: int, chunks: int | None, ring_step: float, wire: str | None,
    steps: int, train: bool, patience: float, trace: Path | None, **times: Any,
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
                schedule, work, costs, engine=engine, replicas=replicas, wire=WireFormat(wire) if wire else None, steps=steps,
                ring_step=ring_step, patience=patience, progress=progress,
            )  # fmt: skip
        except RunFailed as why:
            if trace is not None and why.measured:
                _write(trace, json.dumps(chrome_trace(why.measured, 1e6, f"{name}, until it failed")))
            raise
    if was_started(engine) and ENGINES[engine].rank(None):
        return  # mpiexec or torchrun has started this program once for each rank, and only rank 0 prints
    click.echo(f"{schedule!r}, {replicas} x {devices} ranks, engine {engine}")
    click.echo(_summary(ran, predicted))
    click.echo(ran.output, nl=False)
    if trace is not None:
        _write(trace, json.dumps(ran.timeline.to_chrome_trace()))


def _training(schedule: Schedule, replicas: int) -> TrainingWork:
    """Return the work of training a small network with at least one layer for each stage."""
    layers = max(2, schedule.stages)
    return TrainingWork(schedule, replicas, network=Network((64, *[32] * (layers - 1), 10)), batch=equal_batch(schedule, replicas))


def _summary(ran: RunResult, predicted: HybridStep) -> str:
    """Return lines of text that compare the measured steps with the predicted step."""
    measured, unit = [float(each.makespan) for each in ran.timelines], ran.timeline.unit
    middle, ideal = float(ran.timeline.makespan), float(predicted.makespan)
    lines = [f"measured {middle:.1f} {unit} (median of {len(measured)} steps, {min(measured):.1f} to {max(measured):.1f})"]
    lines += [f"predicted {ideal:.1f} {unit}" + (f": the measured step is longer by {middle / ideal - 1:.1%}" if ideal else "")]
    lines += [f"bubble ratio measured {ran.timeline.bubble_ratio:.3f}, predicted {predicted.timeline.bubble_ratio:.3f}"]
    if ran.results[0] is not None:  # operations that only sleep have no results
        losses = [sum(each) for each in zip(*(result.losses for result in ran.results), strict=True)]
        lines += [f"loss {losses[0]:.4f} in the first step, {losses[-1]:.4f} in the last"]
    return "\n".join(lines)


def _write(path: Path, text: str) -> None:
    """Write a text to a file, and print that it was written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as why:
        raise HybridLabError(f"{path} cannot be written: {why.strerror}", "not-written") from None
    click.echo(f"{path}: written", err=True)
