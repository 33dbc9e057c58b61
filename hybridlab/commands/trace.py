"""The command ``trace``: where the time of a recorded training step went."""

from pathlib import Path
from typing import Any

import click

from hybridlab.commands.shared import FILE, about_timeline, given, orders_option, write_text
from hybridlab.costs import Costs
from hybridlab.course.grading.command_line import json_option, main, print_results, report_errors, with_examples
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.schedules import REGISTRY
from hybridlab.timeline import Timeline


def _events(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | None:
    """Return the names of events by the kind of their operation."""
    pairs = dict(each.partition("=")[::2] for each in values)
    if not all(pairs.values()):
        raise click.BadParameter("give a kind and a name, such as F=forward_step", context, option)
    return pairs or None


def _ran(schedule: str, chunks: int | None) -> str | tuple[str, int] | Schedule:
    """Return the schedule that a job ran: its name, its name and number of chunks, or the orders in a CSV file."""
    if schedule in REGISTRY or Path(schedule).suffix.lower() != ".csv":
        return schedule if chunks is None else (schedule, chunks)
    if chunks is not None:
        raise HybridLabError(f"the orders in {schedule} have their own number of chunks: leave --chunks out", "two-ways")
    return Schedule.from_csv(schedule, name=Path(schedule).stem)


@main.command(
    "trace",
    epilog=with_examples(
        "trace traces/",
        "trace traces/ --costs times.csv --csv measured.csv",
        "trace rank*.json --events F=forward_step --events B=backward_step --schedule 1f1b",
        "trace merged.json --events F=forward-compute --events B=backward-compute --schedule orders.csv --replica 0 --step 1",
        "trace step.json --pattern '(?P<kind>\\w+) of stage (?P<stage>\\d+), microbatch (?P<microbatch>\\d+)' --json",
    ),
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--pattern", help="For traces of other programs: a regular expression with the groups kind, stage and microbatch.")
@click.option(
    "--events",
    multiple=True,
    callback=_events,
    help="For events without stage and microbatch: a kind (F, B, I or W) and the name of its events, such as F=forward_step.",
)
@click.option(
    "--schedule",
    help="The schedule that ran (a name, or a CSV file of orders): with --events, or alone for traces of torch.profiler without ranges.",
)
@click.option("--chunks", type=int, help="With --schedule: model chunks on each device.")
@click.option("--step", type=int, help="Which step to read, from 0, if the trace has several. Steps before a kill are whole.")
@click.option(
    "--replica",
    type=int,
    help="Which pipeline to read, from 0, if one file has several: each is a process, or a group (?P<replica>...) finds its number.",
)
@click.option("--shift-clocks", is_flag=True, help="Shift the clocks of ranks if their times disagree.")
@click.option("--per", default="device", show_default=True, help="What has a time in --costs: device, stage or microbatch.")
@click.option("--weight-share", default=0.5, show_default=True, help="The weight gradient's share of the time of a full backward.")
@click.option("--costs", "table", type=FILE, help="Write the times to this file, for rank and schedule.")
@orders_option
@json_option
@report_errors
def trace_files(
    files: tuple[Path, ...], pattern: str | None, events: dict[str, str] | None, schedule: str | None, chunks: int | None,
    step: int | None, replica: int | None, shift_clocks: bool, per: str, weight_share: float, table: Path | None, orders: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Print how the ranks spent the time of a training step. FILES are traces of the step.

    FILES are (1) the traces of torch.profiler, one for each rank; (2) a folder with such traces; or (3) a trace of another program.
    """
    path = files[0] if len(files) == 1 else files  # a single path can be a folder or a pattern such as *.json
    if chunks is not None and schedule is None:
        raise HybridLabError("--chunks needs --schedule: it is the number of chunks of this schedule", "missing-argument")
    asked = given(events=events, schedule=None if schedule is None else _ran(schedule, chunks), step=step, replica=replica)
    timeline = Timeline.from_chrome_trace(path, pattern=pattern, shift_clocks=shift_clocks, **asked)
    where = timeline.breakdown()
    times = {name: getattr(where, name) for name in ("forward", "backward", "weight", "warm_up", "steady", "cool_down", "after")}
    results: dict[str, Any] = about_timeline(timeline) | {"devices": timeline.schedule.devices, "breakdown": times}
    results["critical_path"] = [each._asdict() | {"op": str(each.op)} for each in where.critical_path]
    lines = [repr(timeline.schedule), f"makespan {timeline.makespan:.6g} {timeline.unit}, idle {timeline.bubble_ratio:.1%}"]
    lines += [f"peak activations of each device: {', '.join(f'{peak:g}' for peak in timeline.peak_activations)} microbatches"]
    lines += [*repr(where).splitlines()[1:], " ".join(str(each.op) for each in where.critical_path)]
    print_results(results, "\n".join(lines), as_json)
    write_text(table, lambda: Costs.from_timeline(timeline, per=per, weight_share=weight_share).to_csv())
    if orders is not None:
        if not isinstance(timeline.schedule, Schedule):
            message = "this trace has several pipelines, but --csv writes the orders of one: choose one with --replica"
            raise HybridLabError(message, "several-replicas")
        write_text(orders, timeline.schedule.to_csv)
