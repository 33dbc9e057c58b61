"""The commands ``rank`` and ``schedule``: compare and make schedules for measured times."""

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from hybridlab.automatic import rank, schedule_for
from hybridlab.automatic.for_times import PLACEMENTS
from hybridlab.commands.shared import (
    FILE,
    about_timeline,
    all_of,
    costs_in,
    devices_option,
    given,
    memory_of,
    memory_options,
    microbatches_option,
    orders_option,
    per_option,
    table_option,
    trace_option,
    unit_option,
    write_text,
    write_trace,
)
from hybridlab.costs import Costs
from hybridlab.course.grading.command_line import (
    DONE,
    INTERRUPTED,
    in_options,
    json_option,
    main,
    print_results,
    report_errors,
    with_examples,
)
from hybridlab.errors import HybridLabError
from hybridlab.simulation import simulate

messages_option = click.option(
    "--messages",
    type=click.Choice(["free", "ordered"]),
    default="free",
    show_default=True,
    help="free; or ordered: a link carries one message at a time, in order.",
)
split_option = click.option("--split/--no-split", default=True, show_default=True, help="Whether backwards may be split.")


def of_times(command: Callable[..., int]) -> Any:
    """Return a command that reads measured times from a file.

    The command adds the shared argument TIMES and the shared options. It calls ``command`` with the costs from the file and with the
    sizes, which are arguments of the library. It prints errors as sentences.
    """

    @all_of(
        click.argument("times", type=FILE),
        microbatches_option,
        memory_options,
        devices_option,
        per_option,
        unit_option,
        messages_option,
        click.option("--seconds", type=float, help="The effort in all, about the seconds on one CPU core.  [default: 10]"),
        json_option,
    )
    @report_errors
    @wraps(command)
    def run(
        times: Path,
        per: str | None,
        unit: str | None,
        memory: Any,
        activation: Any,
        weights: Any,
        microbatches: int,
        devices: int | None,
        seconds: float | None,
        held_after: float | None,
        messages: str,
        **named: Any,
    ) -> int:
        limits = given(memory=memory_of(memory, activation, weights), devices=devices, seconds=seconds, held_after=held_after)
        progress = None if sys.stderr.isatty() else False  # no bar in the log of a job
        sizes = {"microbatches": microbatches, "messages": messages, "progress": progress}
        return command(costs_in(times, per, unit), sizes | limits, **named)

    return run


@main.command(
    "rank",
    epilog=with_examples(
        "rank times.csv --microbatches 12 --memory 6",
        "rank times.csv --microbatches 12 --memory 80GB --activation 1.9GB --weights 20GB",
        "rank times.csv --microbatches 8 --memory 4,4,3,2 --csv table.csv --plot rank.png",
        "rank - --microbatches 8 --json < times.csv",
    ),
)
@click.option("--most-chunks", type=int, help="The most model chunks on a device that are tried, such as its number of layers.")
@split_option
@table_option
@click.option("--plot", "picture", type=FILE, help="Draw time against memory into this file, such as rank.png.")
@of_times
def rank_times(
    costs: Costs, sizes: dict[str, Any], most_chunks: int | None, split: bool, table: Path | None, picture: Path | None, as_json: bool
) -> int:
    """Rank the known schedules for the measured times in the CSV file TIMES. Also rank schedules made for these times.

    TIMES has a column for each device, stage or microbatch, and rows such as forward, backward and p2p. Give - to read standard input.

    Press Ctrl-C to end the search. The command then prints what it has found.
    """
    found = rank(costs, **sizes, split=split, **given(most_chunks=most_chunks))
    results = {
        "devices": found.devices,
        "microbatches": found.microbatches,
        "unit": found.unit,
        "schedules": found.to_rows(),
        "searches": [{"schedule": each.title, "summary": each.summary} for each in found if each.summary],
        "notes": list(map(in_options, found.notes)),
        "left_out": [{"schedule": each.name, "chunks": each.chunks, "reason": each.refusal} for each in found.refused],
    }
    print_results(results, in_options(repr(found)), as_json)
    write_text(table, found.to_csv)
    if picture is not None:
        _draw(found, picture)
    return _end(found)


@main.command(
    "schedule",
    epilog=with_examples(
        "schedule times.csv --microbatches 12 --memory 6",
        "schedule times.csv --microbatches 12 --memory 6 --chunks 2 --csv orders.csv --trace trace.json",
    ),
)
@click.option("--chunks", type=click.IntRange(1, 2), default=1, show_default=True, help="Model chunks on each device.")
@click.option(
    "--placement",
    type=click.Choice(PLACEMENTS),
    default="any",
    show_default=True,
    help="How two chunks lie on the devices: twice in the same direction (loop), there and back (v), or what is shorter.",
)
@split_option
@orders_option
@trace_option
@of_times
def schedule_times(
    costs: Costs, sizes: dict[str, Any], chunks: int, placement: str, split: bool, orders: Path | None, trace: Path | None, as_json: bool
) -> int:
    """Make a schedule for the measured times in the CSV file TIMES, and print the order of each device.

    TIMES is as for the command rank.

    Press Ctrl-C to end the search. The command then prints and writes the best schedule that it has found.
    """
    found = schedule_for(costs, **sizes, chunks=chunks, placement=placement, split=split)
    timeline = simulate(found, costs, messages=sizes["messages"])
    results = {"orders": str(found).splitlines(), "bound": found.bound, "proven": found.proven, "summary": found.summary}
    print_results(about_timeline(timeline) | results, str(found), as_json)
    click.echo(f"{found.makespan:.6g} {costs.unit or 'slots'}: {found.summary}", err=True)
    write_text(orders, found.to_csv)
    write_trace(trace, timeline)
    return _end(found)


def _end(found: Any) -> int:
    """Return the exit code of a search. Say so if Ctrl-C has ended it."""
    if not found.interrupted:
        return DONE
    click.echo("interrupted: these are the best results so far", err=True)
    return INTERRUPTED


def _draw(found: Any, picture: Path) -> None:
    """Draw a ranking into a file."""
    try:
        found.plot().savefig(picture)
    except ImportError:
        message = "a figure comes from matplotlib, which is not installed: pip install 'hybridlab[labs]'"
        raise HybridLabError(message, "not-installed") from None
    except (OSError, ValueError) as why:
        raise HybridLabError(f"{picture} cannot be written: {why}", "not-written") from None
    click.echo(f"{picture}: written", err=True)
