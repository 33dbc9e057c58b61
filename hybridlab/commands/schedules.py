"""The commands ``schedules`` and ``simulate``: what the known schedules need, and what an order of your own takes."""

from pathlib import Path
from typing import Any

import click

from hybridlab.commands.shared import (
    FILE,
    about_timeline,
    activation_option,
    costs_in,
    csv_of,
    per_option,
    readable,
    require_units,
    table_option,
    text_table,
    times_in,
    trace_option,
    unit_option,
    weights_option,
    write_text,
    write_trace,
)
from hybridlab.costs import Costs
from hybridlab.course.grading.command_line import json_option, main, print_results, report_errors, with_examples
from hybridlab.errors import HybridLabError
from hybridlab.memory import SAME, Memory
from hybridlab.schedule import Schedule
from hybridlab.schedules import REGISTRY, build
from hybridlab.sheets import text_of
from hybridlab.simulation import simulate, torch_actions

HEADS = {
    "schedule": "schedule",
    "chunks": "chunks",
    "copies": "copies",
    "peak": "peak",
    "makespan": "makespan",
    "device_span": "span",
    "idle": "idle",
    "messages": "messages",
    "memory_gb": "GB",
}
SPAN = (
    "span: the longest time from the first start to the last end on one device. A step takes this time if no device waits for the others"
    " between two steps (Qi et al., arXiv 2401.10241). It is shorter than the makespan for {}."
)
LEFT_OUT = (
    "{} sends and receives of the file are left out: the clock computes the messages from the dependencies. It is not checked whether"
    " devices wait for each other for ever with the messages of the file: --messages file checks it."
)


@main.command(
    "schedules",
    epilog=with_examples(
        "schedules --devices 4 --microbatches 8",
        "schedules --devices 8 --microbatches 32 --forward 10 --backward 20 --p2p 1 --csv schedules.csv",
        "schedules --devices 4 --microbatches 8 --activation 1.9GB --weights 20GB",
        "schedules --devices 4 --microbatches 8 --chunks 4 --json",
    ),
)
@click.option("--devices", type=int, required=True, help="The number of devices.")
@click.option("--microbatches", type=int, required=True, help="The number of microbatches.")
@click.option("--chunks", type=int, help="Model chunks on each device. For each schedule, the fewest that it supports if left out.")
@click.option("--forward", callback=times_in, default="1", show_default=True, help="Time of a forward; 10,15 for two devices.")
@click.option("--backward", callback=times_in, default="2", show_default=True, help="Time of a backward.")
@click.option("--p2p", type=float, default=0.0, show_default=True, help="Latency of a message.")
@activation_option
@weights_option
@table_option
@json_option
@report_errors
def show_schedules(
    devices: int, microbatches: int, chunks: int | None, activation: Any, weights: Any, table: Path | None, as_json: bool, **times: Any
) -> None:
    """Show all known schedules at one size, with their memory and their bubble.

    The column copies has the copies of the weights, peak the most activations that a device holds, in microbatches, and idle the share of
    time in which the devices are idle (the bubble). The column span has the longest time between the first start and the last end on one
    device. It is left out if it is the makespan everywhere. With --activation, the column GB has the memory of the fullest device.
    """
    costs, rows, left_out = Costs(**times), [], []
    if weights is not None and activation is None:
        raise HybridLabError("--weights needs --activation, such as --activation 1.9GB --weights 20GB", "missing-argument")
    require_units(activation=activation, weights=weights)
    needs = None if activation is None else Memory(0, activation=activation, weights=0 if weights is None else weights)
    for name, family in REGISTRY.items():
        number = family.fewest_chunks if chunks is None else chunks
        refusal = family.refusal(devices, microbatches, number) or _other_stages(build(name, devices, microbatches, number), needs)
        if refusal:
            left_out.append({"schedule": name, "chunks": number, "reason": refusal})
        else:
            rows.append(_row(build(name, devices, microbatches, number), costs, needs))
    rows.sort(key=lambda row: (row["makespan"], row["peak"]))
    shown = [row | {"idle": f"{row['bubble_ratio']:.1%}"} for row in rows]
    shorter = [row["schedule"] for row in rows if row["device_span"] < row["makespan"] * (1 - SAME)]
    hidden = [*["device_span"] * (not shorter), *["memory_gb"] * (needs is None)]
    heads = {name: head for name, head in HEADS.items() if name not in hidden}
    notes = [SPAN.format(", ".join(shorter))] if shorter else []
    lines = [text_table(shown, heads), *notes, *(f"{each['schedule']} is left out: {each['reason']}" for each in left_out)]
    results = {"devices": devices, "microbatches": microbatches, "times": times, "schedules": rows, "left_out": left_out}
    print_results(results, "\n".join(lines), as_json)
    write_text(table, lambda: csv_of(rows))


def _other_stages(schedule: Schedule, needs: Memory | None) -> str:
    """Return the reason why lists of bytes are for other stages than those of ``schedule``. Otherwise an empty text."""
    try:
        if needs is not None:
            needs.of_devices(schedule)
    except HybridLabError as why:
        if why.code == "does-not-fit":
            return str(why)
        raise
    return ""


def _row(schedule: Schedule, costs: Costs, needs: Memory | None) -> dict[str, Any]:
    """Return the row of a schedule. ``needs`` has the bytes of activations and weights."""
    timeline = simulate(schedule, costs)
    row = {
        "schedule": schedule.name,
        "chunks": schedule.chunks,
        "copies": schedule.copies,
        "peak": float(timeline.peak_activations.max()),
        "makespan": float(timeline.makespan),
        "device_span": float(timeline.device_span),
        "bubble_ratio": float(timeline.bubble_ratio),
        "messages": int(schedule.messages.sum()),
    }
    if needs is not None:
        weights, activation = needs.of_devices(schedule)
        row["memory_gb"] = float((weights + timeline.peak_activations * activation).max() / 1e9)
    return row


@main.command(
    "simulate",
    epilog=with_examples(
        "simulate orders.csv times.csv",
        "simulate orders.csv times.csv --trace trace.json",
        "simulate torch.csv times.csv --messages file",
        "simulate orders.csv times.csv --per stage --unit ms --json",
    ),
)
@click.argument("order", type=FILE)
@click.argument("times", type=FILE)
@per_option
@unit_option
@click.option(
    "--messages",
    type=click.Choice(["free", "ordered", "file"]),
    default="free",
    show_default=True,
    help="free; ordered: a link carries one message at a time, in order; or file: the sends and receives in ORDER, which block.",
)
@trace_option
@json_option
@report_errors
def simulate_order(order: Path, times: Path, per: str | None, unit: str | None, messages: str, trace: Path | None, as_json: bool) -> None:
    """Simulate the orders in the CSV file ORDER with the times in the CSV file TIMES.

    ORDER has a line of operations for each device, as schedule --csv and torch.distributed.pipelining write it. TIMES is as for the command
    rank.

    With --messages file, the sends and receives that torch.distributed.pipelining wrote into ORDER are simulated, too. Each of them waits
    for the other device. The command says so if devices then wait for each other for ever.
    """
    costs, text = costs_in(times, per, unit), text_of(readable(order))
    schedule = Schedule.parse(text)
    left_out = sum(number for kind, number in schedule.left_out.items() if kind.startswith(("SEND", "RECV")))
    notes = [LEFT_OUT.format(f"{left_out:,}")] if left_out and messages != "file" else []
    timeline = simulate(schedule, costs, messages=torch_actions(schedule, text) if messages == "file" else messages)
    about = about_timeline(timeline) | {"notes": notes}
    rows = [
        {"device": str(device), "busy": float(busy), "idle": float(idle), "peak": float(peak)}
        for device, (busy, idle, peak) in enumerate(zip(about["busy"], about["idle"], about["peak_activations"], strict=True))
    ]
    unit_text = f" {timeline.unit}" if timeline.unit else ""
    lines = [f"makespan {timeline.makespan:.6g}{unit_text}, idle {timeline.bubble_ratio:.1%}"]
    lines += [text_table(rows, {"device": "device", "busy": f"busy{unit_text and ',' + unit_text}", "idle": "idle", "peak": "peak"})]
    print_results(about, "\n".join(lines), as_json)
    for note in notes:
        click.echo(note, err=True)
    write_trace(trace, timeline)
