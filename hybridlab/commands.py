"""The command ``hybridlab``: rank and schedule for measured times, beside the commands of the course."""

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from hybridlab.automatic import rank, schedule_for
from hybridlab.costs import Costs
from hybridlab.course.grading.cli import main, told
from hybridlab.errors import HybridLabError
from hybridlab.simulation import simulate

__all__ = ["main"]

PER = click.Choice(["device", "stage"])


def of_times(command: Callable[..., None]) -> Any:
    """Return a command on measured times.

    It reads the file and the options that all such commands share. The function gets the costs, and the other shared options by name.
    Errors are told as sentences.
    """

    @told
    @wraps(command)
    def run(times: Path, per: str, unit: str, **named: Any) -> None:
        command(Costs.from_csv(times, per=per, unit=unit), **named)

    for option in (
        click.option("--seconds", default=10.0, show_default=True, help="Effort of each search; 1 is about one second on one core."),
        click.option("--devices", type=int, help="The number of devices, if the times are per stage or the same for all."),
        click.option("--unit", default="ms", show_default=True, help="The unit of the times: s, ms or us."),
        click.option("--per", type=PER, default="device", show_default=True, help="Whether a column has the times of a device or a stage."),
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
    """Print which schedules are best for the measured times in the CSV file TIMES, beside those made for them.

    TIMES has a column for each stage, and lines such as forward, backward and p2p.
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

    Ctrl-C ends the search, and the best schedule so far is printed and written.
    """
    made = schedule_for(costs, **sizes)
    click.echo(str(made))
    click.echo(f"{made.makespan:.6g} {costs.unit}: {made.summary}", err=True)
    if table is not None:
        _write(table, made.to_csv())
    if trace is not None:
        _write(trace, json.dumps(simulate(made, costs).to_chrome_trace()))


def _write(path: Path, text: str) -> None:
    """Write a file and say so; an error is a sentence."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as why:
        raise HybridLabError(f"{path} cannot be written: {why.strerror}", "not-written") from None
    click.echo(f"{path}: written", err=True)
