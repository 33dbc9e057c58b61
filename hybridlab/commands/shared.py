"""What several commands on times share: arguments, options, reading and writing of files."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.memory import Memory
from hybridlab.tables import aligned, csv_text
from hybridlab.timeline import Timeline

FILE = click.Path(path_type=Path)
Decorator = Callable[[Any], Any]

# Options that several commands have. An option that is not given is None; the library then uses its own default.
devices_option = click.option("--devices", type=int, help="The number of devices, if the times are per stage or the same for all.")
microbatches_option = click.option("--microbatches", required=True, type=int, help="The number of microbatches.")
per_option = click.option("--per", help="What each column belongs to, if the file does not say so: device, stage or microbatch.")
unit_option = click.option(
    "--unit", help="The unit of the times, if the file does not say it: s, ms, us, or slots for times without a unit."
)
trace_option = click.option("--trace", type=FILE, help="Write a trace for Perfetto to this file.")
orders_option = click.option("--csv", "orders", type=FILE, help="Write the orders for torch.distributed.pipelining to this file.")
table_option = click.option("--csv", "table", type=FILE, help="Write the table to this file.")


def all_of(*options: Decorator) -> Decorator:
    """Return one decorator for several options, which the help lists in this order."""

    def add(command: Any) -> Any:
        for option in reversed(options):  # a decorator that is applied later comes first in the help
            command = option(command)
        return command

    return add


def _amounts(context: click.Context, option: click.Parameter, value: str | None) -> float | str | list[Any] | None:
    """Return an amount of memory, or a list with one for each device. An amount is a number, or a text such as 80GB."""
    if value is None:
        return None
    amounts = [_number(each) for each in value.split(",")]
    return amounts[0] if len(amounts) == 1 else amounts


def times_in(context: click.Context, option: click.Parameter, value: str) -> float | list[float]:
    """Return one time as a number, or several times as a list. Commas separate the times."""
    try:
        numbers = [float(each) for each in value.split(",")]
    except ValueError:
        message = f"{value!r} is not a time: give a number such as 10, or one for each device such as 10,10,15,10"
        raise click.BadParameter(message, context, option) from None
    return numbers[0] if len(numbers) == 1 else numbers


def _number(text: str) -> float | str:
    """Return a text as a number if it is one."""
    try:
        return float(text)
    except ValueError:
        return text.strip()


activation_option = click.option(
    "--activation",
    callback=_amounts,
    help="The bytes of one microbatch's activations on a device, such as 1.9GB, or 2GB,1GB of two stages.",
)
weights_option = click.option(
    "--weights",
    callback=_amounts,
    help="The bytes that stay on a device for one copy of its weights, such as 20GB, or 30GB,20GB of two stages.",
)
memory_options = all_of(
    click.option(
        "--memory",
        callback=_amounts,
        help="The most that a device may hold: microbatches such as 4, or bytes such as 80GB with --activation. 4,4,3,2 for four devices.",
    ),
    activation_option,
    weights_option,
    click.option("--held-after", type=float, help="The part of an activation that stays between a split backward's two halves, 0 to 1."),
)


def memory_of(memory: Any, activation: Any, weights: Any) -> Any:
    """Return the argument ``memory`` of the library from the three options of memory.

    >>> memory_of(4.0, None, None), memory_of("8GB", "1GB", None).total
    (4.0, 8000000000.0)
    """
    if activation is not None and memory is not None:
        require_units(memory=memory, activation=activation, weights=weights)
        return Memory(memory, activation=activation, weights=0 if weights is None else weights)
    if memory is None and (activation is not None or weights is not None):
        message = "--activation and --weights need --memory, such as --memory 80GB --activation 1.9GB --weights 20GB"
        raise HybridLabError(message, "missing-argument")
    texts = [each for each in (memory if isinstance(memory, list) else [memory]) if isinstance(each, str)]
    if texts or weights is not None:
        what = f"{texts[0]!r} is no number of microbatches" if texts else "--weights counts bytes"
        raise HybridLabError(f"{what}: memory in bytes needs --activation, such as --memory 80GB --activation 1.9GB", "missing-argument")
    return memory


def require_units(**amounts: Any) -> None:
    """Raise an error if an amount of bytes has no unit. On the command line, 80 can be 80 GB, 80 microbatches or 80 bytes.

    >>> require_units(memory="80GB", activation=1.0, weights=None)
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: --activation 1 has no unit, so it would be bytes: write 1GB for gigabytes, or 1B for bytes
    """
    for name, value in amounts.items():
        for amount in value if isinstance(value, list) else [value]:
            if isinstance(amount, float) and amount:
                wrong = f"--{name} {amount:g} has no unit, so it would be bytes"
                raise HybridLabError(f"{wrong}: write {amount:g}GB for gigabytes, or {amount:g}B for bytes", "no-unit")


def given(**options: Any) -> dict[str, Any]:
    """Return the options that are not None. For the others, the library's own defaults hold.

    >>> given(devices=4, seconds=None)
    {'devices': 4}
    """
    return {name: value for name, value in options.items() if value is not None}


def costs_in(path: Path, per: str | None, unit: str | None) -> Costs:
    """Return the times in a file; ``-`` stands for standard input."""
    return Costs.from_csv(readable(path), per=per, unit=unit)


def readable(path: Path) -> Any:
    """Return what ``from_csv`` reads: the path, or standard input for ``-``."""
    if str(path) != "-":
        return path
    if sys.stdin is None:
        raise HybridLabError("standard input is closed: give the name of a file", "not-found")
    return sys.stdin.buffer


def write_text(path: Path | None, text: str | Callable[[], str]) -> None:
    """Write a text to a file, and say so on standard error. Do nothing without a path."""
    if path is None:
        return
    try:
        path.write_text(text if isinstance(text, str) else text(), encoding="utf-8")
    except OSError as why:
        raise HybridLabError(f"{path} cannot be written: {why.strerror}", "not-written") from None
    click.echo(f"{path}: written", err=True)


def write_trace(path: Path | None, timeline: Timeline) -> None:
    """Write a timeline as a trace for Perfetto. Do nothing without a path."""
    write_text(path, lambda: json.dumps(timeline.to_chrome_trace()))


def about_timeline(timeline: Timeline) -> dict[str, Any]:
    """Return the main results of a timeline."""
    return {
        "unit": timeline.unit,
        "makespan": timeline.makespan,
        "bubble_ratio": timeline.bubble_ratio,
        "busy": timeline.busy,
        "idle": timeline.makespan - timeline.busy,
        "peak_activations": timeline.peak_activations,
    }


def text_table(rows: Sequence[Mapping[str, Any]], heads: Mapping[str, str]) -> str:
    """Return rows as lines of text. The first column is aligned left, and the others right.

    Parameters
    ----------
    rows : sequence of mappings
        The rows, with a value or a text for each column.
    heads : mapping
        The columns: from the name in the rows to the head that is printed.

    >>> print(text_table([{"schedule": "gpipe", "peak": 8.0}], {"schedule": "schedule", "peak": "peak"}))
    schedule  peak
    gpipe        8
    """
    lines = [list(heads.values()), *([_cell(row[name]) for name in heads] for row in rows)]
    return "\n".join(aligned(lines))


def _cell(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def csv_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows with the same columns as CSV text."""
    return csv_text([list(rows[0]) if rows else [], *(row.values() for row in rows)])
