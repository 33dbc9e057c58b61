"""The commands ``zoo``: the open problems, the check of a record, the search for better ones, and the file to send."""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import click

from hybridlab import zoo
from hybridlab.commands.shared import FILE, csv_of, table_option, text_table, write_text
from hybridlab.course.grading.command_line import (
    DONE,
    EXIT_CODES,
    FAILED,
    INTERRUPTED,
    USAGE,
    json_option,
    main,
    print_results,
    progress_on_terminal,
    report_errors,
    with_examples,
)
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.zoo.reading import first_sentence, text_of_zoo
from hybridlab.zoo.solving import better_of, proven_bound, record_found
from hybridlab.zoo.zoo_record import ProvenBy

HEADS = {
    "instance": "instance",
    "class": "class",
    "sizes": "sizes",
    "memory": "memory",
    "makespan": "best",
    "bound": "bound",
    "gap": "gap",
    "difficulty": "proof",
    "found_by": "found by",
    "proven_by": "proven by",
}
ROW = {"record": "record", "makespan": "makespan", "bound": "bound", "gap": "gap", "reason": "reason", "found_by": "found by"}
SOLVED = {"instance": "instance", "makespan": "found", "bound": "bound", "gap": "gap", "best": "best", "best_bound": "its bound"}


@main.group("zoo")
def zoo_group() -> None:
    """Scheduling problems with the best known orders and bounds: list them, solve them, check and send a record."""


@zoo_group.command("list", epilog=with_examples("zoo list", "zoo list --open", "zoo list --class chunks --json"))
@click.option("--open", "only_open", is_flag=True, help="Only instances without a proven optimum.")
@click.option("--class", "group", type=click.Choice(zoo.CLASSES), help="Only instances of this class.")
@json_option
@report_errors
def list_zoo(only_open: bool, group: str | None, as_json: bool) -> None:
    """List the instances with the best known makespan and bound.

    The column proof says how hard the proof was that no order is shorter: at once (a bound), easy (a solver in 10 s), hard, or open.
    """
    pairs = [(each, zoo.record(each.name)) for each in zoo.instances() if group in (None, each.group)]
    rows = [_row(*pair) for pair in pairs if not (only_open and pair[1].closed)]
    shown = [row | {"memory": _range(row["memory"]), "gap": f"{row['gap']:.1%}"} for row in rows]
    still = sum(not record.closed for _, record in pairs)
    text = f"{text_table(shown, HEADS)}\n{len(pairs)} instances, {still} of them open; version {zoo.VERSION}"
    print_results({"version": zoo.VERSION, "instances": rows}, text, as_json)


@zoo_group.command("show", epilog=with_examples("zoo show even-8x16-m4", "zoo show even-8x16-m4 --json"))
@click.argument("name")
@json_option
@report_errors
def show_instance(name: str, as_json: bool) -> None:
    """Show the instance NAME and its record: sizes, times, memory, and the best known order and bound."""
    instance, record = zoo.instance(name), zoo.record(name)
    results = {
        "instance": instance.to_json(),
        "record": record.to_json(),
        "closed": record.closed,
        "gap": record.gap,
        "difficulty": record.difficulty,
    }
    unit = f" {instance.unit}" if instance.unit else ""
    about = [f"{key}: {_words(value)}" for key, value in instance.to_json().items() if key != "format"]
    found, proven = record.found, record.proven
    about += [
        f"makespan: {record.makespan:,}{unit}, found by {found.by} on {found.date}: {found.how}{_source(found.source)}",
        f"bound: {record.bound:,}{unit}, {_proof(proven)}",
        f"proof: {record.difficulty}" + ("" if record.closed else f", gap {record.gap:.1%}"),
        *(f"device {device}: {line}" for device, line in enumerate(record.order)),
    ]
    print_results(results, "\n".join(about), as_json)


@zoo_group.command(
    "verify",
    epilog=with_examples(
        "zoo verify even-8x16-m4.json", "zoo verify sent/*.json --prove --json", "zoo verify orders.csv --instance even-8x16-m4"
    ),
)
@click.argument("files", type=FILE, nargs=-1, required=True)
@click.option(
    "--instance", "name", help="The instance of which a file has an order: text, or CSV as torch.distributed.pipelining writes it."
)
@click.option("--prove", is_flag=True, help="Let our solver prove a solver's bound again. This takes ten minutes at most.")
@json_option
@report_errors
def verify_files(files: Sequence[Path], name: str | None, prove: bool, as_json: bool) -> int:
    """Check records, or orders with --instance, and compare them with what is known.

    The clock computes the makespan. The memory, the sizes and the bound are checked. Exit code 1: a file is wrong, or worse than what is
    known. Exit code 2: a file cannot be read.
    """
    if name is not None:
        zoo.instance(name)  # an unknown name is told once, and not for each file
    code, results, lines = DONE, [], []
    with progress_on_terminal(len(files), "verify") as advance:
        for path in files:
            try:
                row, text = _verified(path, name, prove)
            except HybridLabError as why:
                row, text = {"code": "refused", "sentence": first_sentence(why)}, [first_sentence(why)]
                code = max(code, EXIT_CODES.get(why.code or "", USAGE))
            results.append({"file": str(path)} | row)
            lines += [text[0] if text[0].startswith(str(path)) else f"{path}: {text[0]}", *text[1:]]
            if row["code"] in ("worse", "refused"):
                code = max(code, FAILED)
            advance(str(path))
    print_results({"files": results}, "\n".join(lines), as_json)
    return code


def _verified(path: Path, name: str | None, prove: bool) -> tuple[dict[str, Any], list[str]]:
    """Return what is known about one file, and the lines that are printed: the verdict, then the old and the new row of a record."""
    text = text_of_zoo(path)
    if not text.lstrip().startswith("{") and path.suffix != ".json":
        if name is None:
            raise HybridLabError(f"{path} is no record: for a file with an order, name its instance with --instance", "missing-argument")
        schedule = Schedule.parse(text, name)
        verdict = zoo.verify(schedule, zoo.instance(name), zoo.record(name))
        return vars(verdict) | {"instance": name}, [verdict.sentence]
    sent = zoo.read_record(path)
    known = zoo.record(sent.instance)
    if prove and sent.proven.reason == "solver":
        click.echo(f"{path}: our solver proves the bound again, in ten minutes at most", err=True)
    verdict = zoo.verify(sent, zoo.instance(sent.instance), known, prove=prove)
    rows = [_row_of(title, each) for title, each in (("known", known), ("sent", sent))]
    shown = [row | {"gap": f"{row['gap']:.1%}"} for row in rows]
    table = [] if sent == known else text_table(shown, ROW).splitlines()
    return vars(verdict) | {"instance": sent.instance, "rows": rows}, [verdict.sentence, *table]


@zoo_group.command(
    "solve",
    epilog=with_examples(
        "zoo solve even-8x16-m4 --seconds 60",
        "zoo solve --all --seconds 4 --csv gaps.csv",
        "zoo solve --open --seconds 60 --records records",
    ),
)
@click.argument("names", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Solve all instances.")
@click.option("--open", "only_open", is_flag=True, help="Solve all instances without a proven optimum.")
@click.option("--seconds", type=float, default=4.0, show_default=True, help="The effort for each, about the seconds on one CPU core.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The seed of the search.")
@table_option
@click.option("--records", "folder", type=FILE, help="Write the records that are better than the known ones to this folder.")
@json_option
@report_errors
def solve_instances(
    names: Sequence[str], every: bool, only_open: bool, seconds: float, seed: int, table: Path | None, folder: Path | None, as_json: bool
) -> int:
    """Search for a short order of each instance NAME with schedule_for, and print the gap to its bound.

    --csv writes the table of gaps: a program of yours can be compared with it. Press Ctrl-C to end: what is solved is printed and written.
    """
    chosen = [zoo.instance(name) for name in dict.fromkeys(names)]
    if every or only_open:
        chosen = [each for each in zoo.instances() if every or not zoo.record(each.name).closed]
    if not chosen:
        raise HybridLabError("name at least one instance, or take --all or --open", "missing-argument")
    progress = None if len(chosen) == 1 and sys.stderr.isatty() else False  # with several instances, one bar counts them
    rows: list[dict[str, Any]] = []
    code = DONE
    try:
        with progress_on_terminal(len(chosen), "solve") as advance:
            for each in chosen:
                rows.append(_solved(each, seconds, seed, folder, progress))
                advance(each.name)
    except KeyboardInterrupt:
        click.echo("interrupted: these are the results so far", err=True)
        code = INTERRUPTED
    shown = [row | {"gap": f"{row['gap']:.1%}"} for row in rows]
    closed, widest = sum(row["proven"] for row in rows), max((row["gap"] for row in rows), default=0)
    text = f"{text_table(shown, SOLVED)}\n{closed} of {len(rows)} proven; the largest gap is {widest:.1%}"
    print_results({"instances": rows}, text, as_json)
    write_text(table, lambda: csv_of(rows))
    return code


def _solved(instance: zoo.ZooInstance, seconds: float, seed: int, folder: Path | None, progress: bool | None) -> dict[str, Any]:
    """Return the row of an instance after a search. Write its record into ``folder`` if it is better than the known one."""
    start = time.process_time()
    found = zoo.solve(instance, seconds, seed, progress)
    took, makespan, bound = time.process_time() - start, round(found.makespan), proven_bound(instance, found)
    if found.interrupted:
        raise KeyboardInterrupt
    mine = record_found(instance, found, seconds, seed)
    is_new = not (zoo.FOLDER / "records" / f"{instance.name}.json").exists()
    known = mine if is_new else zoo.record(instance.name)
    better = better_of(known, mine)
    if folder is not None and (is_new or better != known):
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / f"{instance.name}.json", better.to_text())
    return {
        "instance": instance.name,
        "class": instance.group,
        "devices": instance.devices,
        "microbatches": instance.microbatches,
        "chunks": instance.chunks,
        "memory": _words(instance.memory, "none"),
        "makespan": makespan,
        "bound": bound,
        "gap": makespan / bound - 1,
        "proven": makespan <= bound,
        "best": known.makespan,
        "best_bound": known.bound,
        "effort": seconds,
        "cpu_seconds": round(took, 2),
    }


@zoo_group.command(
    "record",
    epilog=with_examples(
        'zoo record even-8x16-m4 order.txt --by "A. Turing" --how "tabu search, 10 minutes" > even-8x16-m4.json',
        'zoo record even-8x16-m4 order.csv --by me --how "my solver" --bound 790 --program "Gurobi 12.0" --effort 600 > even-8x16-m4.json',
    ),
)
@click.argument("name")
@click.argument("order", type=FILE)
@click.option("--by", required=True, help="Who found the order, as it shall stand in the table.")
@click.option("--how", required=True, help="How it was found, in a few words.")
@click.option("--source", help="Where more is told, such as the address of a paper.")
@click.option("--bound", type=click.IntRange(1), help="A bound of yours. Without it, the record has the best bound that is known.")
@click.option("--program", help="The solver that proved --bound, with its version. Without it, the bound counts as claimed in --source.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The seed of this solver.")
@click.option("--effort", type=click.IntRange(1), default=600, show_default=True, help="The effort of this solver: seconds on one core.")
@report_errors
def print_record(
    name: str, order: Path, by: str, how: str, source: str | None, bound: int | None, program: str | None, seed: int, effort: int
) -> int:
    """Print the record to send for the instance NAME, with the order in the file ORDER: text, or CSV as other commands write it.

    The makespan is that of the clock. What is no better than the known record stays as it is. If nothing is better, nothing is printed, and
    the exit code is 1. The record goes to hybridlab/zoo/records/NAME.json in a pull request, as CONTRIBUTING.md shows.
    """
    instance, known = zoo.instance(name), zoo.record(name)
    schedule, today = Schedule.parse(text_of_zoo(order), name), date.today().isoformat()
    verdict = zoo.verify(schedule, instance, known)
    if verdict.code == "refused":
        raise HybridLabError(f"{order}: {verdict.sentence}", "does-not-fit")
    sent = zoo.record_of(instance, schedule, by=by, how=how, source=source)
    if bound is not None:
        proven = ProvenBy(by, today, "claimed", None, None, None, source)
        if program is not None:
            proven = replace(proven, reason="solver", program=program, seed=seed, effort=effort)
        elif source is None:
            message = "--bound needs the --program that proved it, or the --source that claims it, such as a paper"
            raise HybridLabError(message, "missing-argument")
        sent = replace(sent, bound=bound, proven=proven)
    sent = better_of(known, zoo.read_record(sent.to_json()))  # reading it checks what the options say
    verdict = zoo.verify(sent, instance, known)
    click.echo(verdict.sentence, err=True)
    if not verdict.accepted or sent == known:
        return FAILED
    sys.stdout.write(sent.to_text())
    return DONE


def _row(instance: zoo.ZooInstance, record: zoo.Record) -> dict[str, Any]:
    """Return the row of an instance in the list."""
    return {
        "instance": instance.name,
        "class": instance.group,
        "sizes": f"{instance.devices}x{instance.microbatches}" + f"x{instance.chunks}" * (instance.chunks > 1),
        "memory": instance.memory,
        "makespan": record.makespan,
        "bound": record.bound,
        "gap": record.gap,
        "difficulty": record.difficulty,
        "found_by": record.found.by,
        "proven_by": f"{record.proven.by}{', claimed' * (record.proven.reason == 'claimed')}",
    }


def _row_of(title: str, record: zoo.Record) -> dict[str, Any]:
    """Return the row of a record beside another one."""
    about = {"record": title, "makespan": record.makespan, "bound": record.bound, "gap": record.gap}
    return about | {"reason": record.proven.reason, "found_by": f"{record.found.by}, {record.found.date}"}


def _range(memory: int | tuple[int, ...] | None) -> str:
    """Return a memory in few characters: a memory for each device as the least and the most."""
    return "-" if memory is None else f"{min(memory)}..{max(memory)}" if isinstance(memory, tuple) else str(memory)


def _words(value: Any, nothing: str = "no limit") -> str:
    """Return a value as words: equal values of a list only once, and a matrix row by row."""
    if isinstance(value, list | tuple):
        if value and isinstance(value[0], list | tuple):
            return " / ".join(map(_words, value))
        return f"{value[0]} each" if len(set(value)) == 1 and len(value) > 1 else " ".join(map(str, value))
    return nothing if value is None else str(value)


def _source(source: str | None) -> str:
    return f" ({source})" if source else ""


def _proof(proven: ProvenBy) -> str:
    """Return who proved a bound, and how."""
    by = f"by {proven.by} on {proven.date}"
    if proven.reason == "claimed":
        return f"claimed {by}{_source(proven.source)}"
    effort = f", effort {proven.effort} s, seed {proven.seed}" if proven.effort else ""
    return f"proven {by}: {proven.program}{effort}{_source(proven.source)}"
