"""The data of measured steps for a timeline explorer. The explorer lists measured steps beside the schedules of its grid."""

from collections.abc import Mapping
from itertools import product
from typing import Any

from hybridlab.checks import counted, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Schedule
from hybridlab.schedule.text import turn_text
from hybridlab.schedules import REGISTRY, known_schedule
from hybridlab.timeline import Timeline
from hybridlab.widgets.page_data import Data, nine_digits

SUFFIX = ", measured"  # no name in the registry has this ending, so the ending marks a measured step


def measured_steps(measured: Any, unit: str | None) -> dict[str, Timeline]:
    """Return the measured timelines: name in the explorer, such as "1f1b, measured" -> timeline. Raise an error for other values.

    >>> measured_steps(None, "ms")
    {}
    """
    if not isinstance(measured, Mapping | None):
        raise HybridLabError(f"measured must be timelines by name, such as {{'1f1b': ...}}, not {short_repr(measured)}", "wrong-type")
    steps = {}
    for name, timeline in (measured or {}).items():
        if not isinstance(timeline, Timeline) or not isinstance(timeline.schedule, Schedule) or timeline.start.ndim > 1:
            raise HybridLabError(f"a measured step is the Timeline of one pipeline, not {short_repr(timeline)}", "wrong-type")
        if timeline.unit != unit:
            message = f"the measured step has times in {timeline.unit}, the explorer in {unit}: give both the same unit"
            raise HybridLabError(message, "does-not-fit")
        steps[known_schedule(name) + SUFFIX] = timeline
    return steps


def with_measured(data: Data, steps: Mapping[str, Timeline]) -> Data:
    """Return the data of a grid with added entries for measured steps. The grid must have the size of each step.

    At the size of the step, an entry has ``orders``, and ``start`` and ``end`` of each operation. At all other sizes, an entry has a
    ``refusal``.
    """
    schedules, pipelines = list(data["schedules"]), dict(data["pipelines"])
    for name, timeline in steps.items():
        # The script needs an entry for each size. The grid may lack the step's number of chunks, so add this number.
        sizes = list(product(data["devices"], data["microbatches"], sorted({*data["chunks"], timeline.schedule.chunks})))
        if size_of(timeline) not in sizes:
            raise HybridLabError(f"{refusal_of(timeline)}: let the explorer show this size, too", "does-not-fit")
        # The simulated schedule stays in the list, so that a reader can compare both.
        schedules.append(title_of(name, timeline))
        for size in sizes:
            fits = size == size_of(timeline)
            pipelines["/".join(map(str, (name, *size)))] = _measured_entry(timeline) if fits else {"refusal": refusal_of(timeline)}
    return {**data, "schedules": schedules, "pipelines": pipelines}


def size_of(timeline: Timeline) -> tuple[int, int, int]:
    """Return the numbers of devices, microbatches and chunks of a step."""
    schedule = timeline.schedule
    return schedule.devices, schedule.microbatches, schedule.chunks


def refusal_of(timeline: Timeline) -> str:
    """Return a sentence with the size of a measured step, the refusal at all other sizes."""
    devices, microbatches, chunks = size_of(timeline)
    sizes = [counted(devices, "device"), counted(microbatches, "microbatch")] + [counted(chunks, "chunk")] * (chunks > 1)
    return f"this step was measured with {' and '.join(sizes)}"


def title_of(name: str, timeline: Timeline) -> Data:
    """Return the name, the title and the chunks of a measured step, in the same form as for a schedule of the grid."""
    return {"name": name, "title": f"{REGISTRY[name.removesuffix(SUFFIX)].title} (measured)", "chunks": [timeline.schedule.chunks]}


def _measured_entry(timeline: Timeline) -> Data:
    """Return the entry of a measured step: its orders and its times."""
    return {
        "orders": [" ".join(map(turn_text, order)) for order in timeline.schedule.turns],
        "start": nine_digits(timeline.start),  # in the order of the operations in ``orders``
        "end": nine_digits(timeline.end),
    }
