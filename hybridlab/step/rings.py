"""A timeline with all-reduce rings at given times, for a picture of rings whose times do not come from a simulation."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import counted, each_of, short_repr, times, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.timeline import Timeline
from hybridlab.timeline.spans import ALL_GATHER, REDUCE_SCATTER, Spans


def with_rings(timeline: Timeline, rings: Mapping[int, Any] | Iterable[Any]) -> Timeline:
    """Return a timeline with all-reduce rings: each ring is a reduce-scatter, then an all-gather that takes the same time.

    Parameters
    ----------
    timeline : Timeline
        A timeline of one setting. The rings replace its spans. The ring of a stage is on one device: the one that holds the stage in the
        first replica and the first copy of the weights.
    rings : mapping of int to (start, end), or iterable of (start, end)
        Start and end of the ring of each stage, in the unit of the timeline. A list is in the order of the stages. A stage that a mapping
        leaves out has no ring.

    Raises
    ------
    HybridLabError
        ``timeline`` is not a timeline of one setting. There is no ring, or a list does not have one ring for each stage. A stage is not
        in the schedule. A ring is not a start and an end; a time is negative or not finite; or a ring ends before it starts.

    Examples
    --------
    >>> from hybridlab import Costs, build, simulate
    >>> run = simulate(build("1f1b", 2, 2), Costs(forward=1, backward=2))
    >>> with_rings(run, {0: (9, 10), 1: (8, 9)}).makespan
    10.0
    """
    if not isinstance(timeline, Timeline) or timeline.start.ndim > 1:
        raise HybridLabError(f"with_rings takes a Timeline of one setting, not {short_repr(timeline)}", "not-a-timeline")
    last = timeline.schedule.stages - 1
    if isinstance(rings, Mapping):
        given = {whole_number(stage, "the stage of a ring", 0, last): ring for stage, ring in rings.items()}
    else:
        given = dict(enumerate(each_of(rings, "rings must have a start and an end for each stage, such as {0: (330, 450)}")))
        if len(given) != last + 1:
            raise HybridLabError(f"a list has one ring for each of the {counted(last + 1, 'stage')}, not {len(given)}", "wrong-length")
    if not given:
        raise HybridLabError("rings is empty: give a start and an end for a stage, such as {0: (330, 450)}", "empty")
    stages = np.array(list(given))
    start, end = np.array([_start_and_end(ring, f"the ring of stage {stage}") for stage, ring in given.items()]).T
    middle = (start + end) / 2
    kinds = np.repeat([REDUCE_SCATTER, ALL_GATHER], stages.size)
    devices = np.tile(np.array(timeline.schedule.device_of)[stages], 2)
    spans = Spans(kinds, devices, np.append(start, middle), np.append(middle, end), stage=np.tile(stages, 2))
    return Timeline(timeline.schedule, timeline.start, timeline.end, spans, timeline.unit)


def _start_and_end(ring: Any, what: str) -> Floats:
    """Return the start and the end of a ring, or raise an error."""
    pair = times(ring, what)
    if pair.shape != (2,):
        raise HybridLabError(f"{what} must be a start and an end, such as (330, 450), not {short_repr(ring)}", "wrong-shape")
    if pair[1] < pair[0]:
        raise HybridLabError(f"{what} ends at {pair[1]:g}, before it starts at {pair[0]:g}", "ends-before-start")
    return pair
