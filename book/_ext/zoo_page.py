"""Fills the page of open problems from the zoo while the book is built.

Before `book/zoo.md` is read, Markdown replaces `{{ count }}`, `{{ open }}`, `{{ classes }}`, `{{ table }}`, `{{ version }}` and
`{{ citation }}`. The orders are not on the page: `zoo.js` loads the script of an instance, `_static/zoo/NAME.js`, when a reader opens its
row. Such a script runs from files, too, where a browser refuses to read JSON. `_static/zoo/views.js` has the explorer and the judge of
orders, and the folders beside it have the JSON files of the instances and of the records. All are written when the site is built.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gallery.words import counted
from kept import folder
from live_widgets import HIDE
from sphinx.errors import ExtensionError

from hybridlab import REGISTRY, Schedule, Timeline, build, simulate, zoo
from hybridlab.widgets import TimelineExplorer
from hybridlab.widgets.page_data import compact_json
from hybridlab.widgets.scripts import LAST_LINE, script_of

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

    from hybridlab.zoo import Record, ZooInstance

PAGE = "book/zoo"
BEST = "best known"  # the title of an order in the explorer
MARKS = re.compile(r"\{\{ (\w+) \}\}")
CLASSES = {
    "even": "all operations take equally long",
    "latency": "messages take time, on all links alike or on one slow link",
    "whole": "backwards are not split",
    "uneven": "stages or memories differ: heavy ends, a slow device, a memory for each device",
    "chunks": "two chunks on each device",
    "published": "times that papers have measured, and examples of labs 13 and 17",
}
LENGTHS = {"us": 1, "ms": 1_000, "s": 1_000_000, None: 1}  # of units, by which the table is sorted
# key -> head, and whether its cells are numbers
COLUMNS = {
    "name": ("instance", False),
    "class": ("class", False),
    "size": ("size", True),
    "memory": ("memory", True),
    "best": ("best", True),
    "bound": ("bound", True),
    "gap": ("gap", True),
    "state": ("state", False),
    "found": ("found by", False),
    "proven": ("proven by", False),
}
CAPTION = "Best and bound are in microseconds where no other unit is given."


# ---- the words of the page ----


def fill(text: str) -> str:
    """Return the page with its marks replaced."""
    shown = [(each, zoo.record(each.name)) for each in zoo.instances()]
    parts = {
        "count": str(len(shown)),
        "open": str(sum(state_of(best) == "open" for _, best in shown)),
        "classes": classes([each for each, _ in shown]),
        "table": table(shown),
        "version": zoo.VERSION,
        "citation": zoo.CITATION,
    }
    return MARKS.sub(lambda mark: parts.get(mark[1], mark[0]), text)


def classes(shown: list[ZooInstance]) -> str:
    """Return the classes with the number of their instances, as a list."""
    counts = {name: sum(each.group == name for each in shown) for name in zoo.CLASSES}
    return "\n".join(f"- *{name}*, {counts[name]}: {CLASSES[name]}" for name in zoo.CLASSES)


def state_of(record: Record) -> str:
    """Return "closed", "open", or "claimed" where only a paper says that the bound holds."""
    return "closed" if record.closed else "claimed" if record.proven.reason == "claimed" else "open"


def table(shown: list[tuple[ZooInstance, Record]]) -> str:
    """Return all instances as an HTML table with the record of each. The script `zoo.js` sorts and filters it."""
    heads = "".join(
        f'<th scope="col" data-key="{key}"{" class=number" * number}><span>{head}</span></th>' for key, (head, number) in COLUMNS.items()
    )
    body = "\n".join(row(each, record) for each, record in shown)
    return (
        '<div class="zoo">\n<div class="zoo-table" role="region" aria-label="All instances" tabindex="0">\n'
        f"<table>\n<caption><span>{CAPTION}</span></caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>\n</div>"
    )


def row(instance: ZooInstance, record: Record) -> str:
    """Return the row of an instance. Each cell has the value by which the script sorts."""
    found, proven, state = record.found, record.proven, state_of(record)
    reason = {"bound": "lower bound", "solver": "solver", "claimed": "not checked"}[proven.reason]
    least, most = memory_range(instance)
    unit = "" if instance.unit == "us" else f" {instance.unit or 'slots'}"
    chunks = f"<small>{counted(instance.chunks, 'chunk')}</small>" if instance.chunks > 1 else ""
    length = LENGTHS[instance.unit]
    cells: dict[str, tuple[Any, str]] = {
        "class": (instance.group, instance.group),
        "size": (instance.operations, f"{instance.devices}x{instance.microbatches}{chunks}"),
        "memory": (most, "no limit" if instance.memory is None else f"{most}" if least == most else f"{least} to {most}"),
        "best": (record.makespan * length, f"{record.makespan:,}{unit}"),
        "bound": (record.bound * length, f"{record.bound:,}{unit}"),
        "gap": (record.gap, f"{record.gap:.1%}" if record.gap else "0"),
        "state": (state, f"{state}, {record.difficulty}" if record.closed else state),
        "found": (found.by, escape(found.by)),
        "proven": (proven.by, escape(f"{proven.by}, {reason}")),
    }
    others = "".join(
        f'<td data-value="{escape(as_text(value))}"{" class=number" * COLUMNS[key][1]}>{words}</td>'
        for key, (value, words) in cells.items()
    )
    name = instance.name
    return f'<tr id="{name}"><th scope="row" data-value="{name}"><a href="#{name}">{name}</a></th>{others}</tr>'


def as_text(value: object) -> str:
    return f"{value:.9f}" if isinstance(value, float) else str(value)


def placement_words(instance: ZooInstance) -> str:
    return {"loop": "loop", "v": "V", "any": "loop or V"}[instance.placement]


def memory_range(instance: ZooInstance) -> tuple[float, float]:
    """Return the least and the most memory of a device. Without a limit both are the number of microbatches."""
    limit = instance.limit if isinstance(instance.limit, tuple) else (instance.limit,)
    return min(limit), max(limit)


# ---- what a row opens ----


def opened(instance: ZooInstance, record: Record) -> dict[str, Any]:
    """Return what the page needs to show an instance and to judge orders for it."""
    schedule, rival = record.schedule, best_of_gallery(instance)
    rivals = {REGISTRY[rival.schedule.name].title: rival.schedule.name} if rival else {}

    def known(devices: int, microbatches: int, chunks: int = 1) -> Schedule:
        return schedule

    links = {"p2p_between": instance.latency} if isinstance(instance.latency, tuple) else {"p2p": instance.latency}
    explorer = TimelineExplorer(
        {BEST: known} | rivals,
        instance.devices,
        instance.microbatches,
        instance.chunks,
        **device_times(instance),
        **links,
        unit=instance.unit,
        show={"compare": rival.schedule.name} if rival else {},
    )
    traits = {name: getattr(explorer, name) for name in ("data", "extra", *explorer.SETTING)}
    return {**task(instance, record), "about": about(instance, record, rival), "explorer": traits}


def task(instance: ZooInstance, record: Record) -> dict[str, Any]:
    """Return what `zoo_judge.js` needs to judge an order. The times are those of a whole device, as the clock of the page takes them."""
    times = {name: each if isinstance(each, list) else [each] * instance.devices for name, each in device_times(instance).items()}
    latency = {"p2p": 0, "links": instance.latency} if isinstance(instance.latency, tuple) else {"p2p": instance.latency, "links": None}
    limit = instance.limit if isinstance(instance.limit, tuple) else (instance.limit,) * instance.devices
    return {
        "name": instance.name,
        **{name: getattr(instance, name) for name in ("devices", "microbatches", "chunks", "stages", "split")},
        "paths": [template.paths[0] for template in instance.templates],
        "memory": None if instance.memory is None else limit,
        "unit": instance.unit or "",
        "costs": times | latency | {"overlap": 0},
        "makespan": record.makespan,
        "bound": instance.bound if record.proven.reason == "claimed" else record.bound,
    }


def about(instance: ZooInstance, record: Record, rival: Timeline | None) -> list[list[str]]:
    """Return the lines of a small table: what the instance is, who found and who proved the record, and the best of the gallery."""
    unit = instance.unit or "slots"
    chunks = counted(instance.chunks, "chunk")
    placed = f", {chunks} a device, {placement_words(instance)}" if instance.chunks > 1 else ""
    memory = "no limit" if instance.memory is None else f"{listed(instance.memory)} activations"
    parts = ("forward", "input_gradient", "weight_gradient") if instance.split else ("forward", "backward")
    latency = "one for each link" if isinstance(instance.latency, tuple) else f"{instance.latency} {unit}"
    found, proven = record.found, record.proven
    effort = f"effort {proven.effort} s, seed {proven.seed}" if proven.reason == "solver" else ""
    proof = joined(proven.program or "claimed, not checked here", effort, proven.source)
    gallery = f"no schedule of the gallery with {chunks} fits in this memory"
    if rival:
        gallery = f"{REGISTRY[rival.schedule.name].title}, {round(rival.makespan):,} {unit}"
    return [
        ["Size", f"{counted(instance.devices, 'device')}, {counted(instance.microbatches, 'microbatch')}{placed}"],
        ["Memory", memory],
        *([name.replace("_", " ").capitalize(), f"{listed(getattr(instance, name))} {unit}"] for name in parts),
        ["Latency", latency],
        ["Times from", instance.source],
        ["Best order", f"{record.makespan:,} {unit}, found by {found.by} on {found.date}: {joined(found.how, found.source)}"],
        ["Lower bound", f"{record.bound:,} {unit}, by {proven.by} on {proven.date}: {proof}"],
        ["Difficulty", record.difficulty],
        ["Best of the gallery", gallery],
    ]


def joined(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)


def listed(values: int | tuple[int, ...]) -> str:
    """Return a number, or several numbers; equal ones are written once."""
    several = values if isinstance(values, tuple) else (values,)
    return f"{several[0]}" if len(set(several)) == 1 else ", ".join(map(str, several))


def device_times(instance: ZooInstance) -> dict[str, Any]:
    """Return the times of the views: forward, backward and weight_share, one number, or one for each device with all its chunks.

    Raises
    ------
    ExtensionError
        The stages of a device differ: a view has no times of stages.
    """
    costs, held = instance.costs, np.array([instance.templates[0].device_of])[0]
    times: dict[str, Any] = {}
    for name in ("forward", "backward", "weight_share"):
        values = np.broadcast_to(getattr(costs, name), (instance.stages,))
        whole = 1 if name == "weight_share" else instance.chunks
        per = [values[held == device] * whole for device in range(instance.devices)]
        if any(len(set(mine.tolist())) > 1 for mine in per):
            raise ExtensionError(
                f"zoo: the stages of a device differ in {instance.name}, and the views of its page have times of devices only"
            )
        listed = [float(mine[0]) for mine in per]
        times[name] = listed[0] if len(set(listed)) == 1 else listed
    return times


def best_of_gallery(instance: ZooInstance) -> Timeline | None:
    """Return the shortest schedule of the registry that solves this instance, or None if no schedule fits."""
    fitting = [timeline for name in REGISTRY if (timeline := solved_by(name, instance)) is not None]
    return min(fitting, key=lambda timeline: float(timeline.makespan), default=None)


def solved_by(name: str, instance: ZooInstance) -> Timeline | None:
    """Return the timeline of a schedule of the registry if it is an order for this instance."""
    if REGISTRY[name].refusal(instance.devices, instance.microbatches, instance.chunks) is not None:
        return None
    schedule = build(name, instance.devices, instance.microbatches, instance.chunks)
    paths = [template.paths for template in instance.templates]
    if schedule.paths not in paths or len(schedule.pairs) or (is_split(schedule) and not instance.split):
        return None
    timeline = simulate(schedule, instance.costs)
    return timeline if (timeline.peak_activations <= np.array(instance.limit)).all() else None


def is_split(schedule: Schedule) -> bool:
    return any(op.kind.value in "IW" for op in schedule[0])


# ---- the files beside the page ----


def views() -> str:
    """Return the script with the explorer and the judge of orders, for pages on a server and pages from files alike."""
    explorer = TimelineExplorer().get_state()
    parts = {"explorer": explorer["_esm"], "judge": script_of("zoo_answer.js")}
    modules = ", ".join(f"{name}: (() => {{\n{text.removesuffix(LAST_LINE)}return {{ render }};\n}})()" for name, text in parts.items())
    return f'hybridlabZoo.give("views", {{ style: {json.dumps(explorer["_css"])}, {modules} }});\n'


def script_for(instance: ZooInstance, record: Record) -> str:
    """Return the script of an instance."""
    return f"hybridlabZoo.give({json.dumps(instance.name)}, {compact_json(opened(instance, record))});\n"


def write_files(target: Path) -> None:
    """Write all files beside the page into a new folder, which is there only when it is whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        whole = Path(name) / target.name
        for part in ("instances", "records"):
            shutil.copytree(
                Path(zoo.__file__).parent / part,
                whole / part,
                ignore=lambda _, names: {each for each in names if not each.endswith(".json")},
            )
        (whole / "views.js").write_text(views(), encoding="utf-8")
        for instance in zoo.instances():
            (whole / f"{instance.name}.js").write_text(script_for(instance, zoo.record(instance.name)), encoding="utf-8")
        whole.rename(target)


# ---- Sphinx ----


def read_page(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == PAGE:
        source[0] = fill(source[0])


def name_rows(app: Sphinx, document: nodes.document) -> None:
    """Register the names of instances as targets, so that labs can link to rows: Sphinx does not see them in HTML."""
    if app.env.docname != PAGE:
        return
    domain = app.env.get_domain("std")
    for instance in zoo.instances():
        name = instance.name
        domain.anonlabels[name] = PAGE, name
        domain.labels[name] = PAGE, name, name
        app.env.metadata[PAGE].setdefault("myst_slugs", {})[name] = 0, name, name


def add_files(app: Sphinx, pagename: str, *_: object) -> None:
    if pagename == PAGE:
        app.add_css_file("zoo.css")
        app.add_js_file(None, body=HIDE)
        app.add_js_file("live_widgets.js", loading_method="defer")
        app.add_js_file("zoo.js", loading_method="defer")


def write_static(app: Sphinx, failed: Exception | None) -> None:
    """Put the files into the site. They are made once for the present sources and records."""
    if failed or app.builder.format != "html":
        return
    sources = [Path(__file__), *sorted((Path(zoo.__file__).parent / "records").glob("*.json"))]
    made = folder() / f"zoo-{hashlib.sha256(b''.join(path.read_bytes() for path in sources)).hexdigest()[:16]}"
    if not made.exists():
        write_files(made)
    shutil.rmtree(Path(app.outdir) / "_static/zoo", ignore_errors=True)
    shutil.copytree(made, Path(app.outdir) / "_static/zoo")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", read_page)
    app.connect("doctree-read", name_rows)
    app.connect("html-page-context", add_files)
    app.connect("build-finished", write_static)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
