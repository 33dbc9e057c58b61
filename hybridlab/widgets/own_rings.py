"""The steps of a step explorer whose rings run at the times that a function returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError
from hybridlab.step import HybridStep, with_rings
from hybridlab.timeline.spans import ALL_GATHER, OPTIMISER, REDUCE_SCATTER, Spans
from hybridlab.widgets.own_schedules import checked_title, in_one_line

CLOSE = 1e-9  # differences up to this part of the makespan come from rounding


@dataclass(frozen=True, eq=False)
class OwnRings:
    """The start and the end of each ring of a step, from a function.

    Parameters
    ----------
    title : str
        The name that the view shows.
    function : callable
        A function of the rows and of the time of one ring. The rows are dicts, one for each operation of all ranks, as
        :meth:`Timeline.to_rows` returns them. The function returns a dict from each stage to the start and the end of its ring.
    """

    title: str
    function: Callable[[list[dict[str, Any]], float], Any]

    def step(self, step: HybridStep) -> HybridStep | str:
        """Return the step with the rings of the function. If these rings cannot run, return a sentence with the reason.

        Parameters
        ----------
        step : HybridStep
            A step in which the rings overlap with the pipelines.

        Examples
        --------
        >>> from hybridlab import Costs, build, hybrid_step
        >>> given = hybrid_step(build("1f1b", 1, 1), Costs(forward=1, backward=2), 2, ring_step=5, overlap=True)
        >>> OwnRings("late", lambda rows, ring_time: {0: (4, 4 + ring_time)}).step(given).makespan
        14.0
        >>> OwnRings("early", lambda rows, ring_time: {0: (1, 1 + ring_time)}).step(given)
        "the ring of stage 0 of 'early' starts at 1, before the gradients of this stage are complete at 3"
        """
        timeline, spans = step.timeline, step.timeline.spans
        if spans is None or not step.all_reduce_time:  # one rank has nobody to average its gradients with
            return step
        ring_time = step.all_reduce_time / (timeline.schedule.chunks * timeline.schedule.copies)
        rows = [row for row in timeline.to_rows() if row["kind"] in ("F", "B", "I", "W")]
        try:
            drawn = with_rings(timeline, self.function(rows, ring_time)).to_rows()[len(rows) :]
        except HybridLabError as why:
            return f"the rings of {self.title!r} cannot be drawn: {in_one_line(why)}"
        except Exception as why:  # a student's function can raise any error, and the view shows it as the reason
            return f"the function of {self.title!r} raises {': '.join(filter(None, (type(why).__name__, in_one_line(why))))}"
        edges = np.full((2, timeline.schedule.stages), np.nan)  # the start and the end of the ring of each stage
        for row in drawn:
            at, name = (0, "start") if row["kind"] == "reduce-scatter" else (1, "end")
            edges[at, row["stage"]] = row[name]
        return self._problem(step, spans, edges, ring_time) or _moved(step, spans, edges)

    def _problem(self, step: HybridStep, spans: Spans, edges: Floats, ring_time: float) -> str | None:
        """Return None if all rings can run, or a sentence about the first ring that cannot."""
        schedule, within = step.timeline.schedule, CLOSE * step.timeline.makespan
        ready = np.zeros(schedule.stages)
        np.maximum.at(ready, schedule.stage, step.timeline.end)
        for stage, (start, end) in enumerate(edges.T.tolist()):
            ring = f"the ring of stage {stage} of {self.title!r}"
            if np.isnan(start):
                return f"the function of {self.title!r} returns no ring of stage {stage}"
            if start < ready[stage] - within:
                return f"{ring} starts at {start:g}, before the gradients of this stage are complete at {ready[stage]:g}"
            if abs(end - start - ring_time) > within:
                return f"{ring} takes {end - start:g}, but each ring takes {ring_time:g}"
        for rank, stages in _stages_of_ranks(spans).items():
            for one, other in pairwise(sorted(stages, key=edges[0].__getitem__)):
                if edges[0, other] < edges[1, one] - within:
                    both = f"the rings of stages {one} and {other} of {self.title!r} run at the same time"
                    return f"{both} from {edges[0, other]:g}, but both use the link of rank {rank}"
        return None


def offered_rings(rings: Any) -> dict[str, OwnRings]:
    """Return the functions that give times of rings, by title.

    Parameters
    ----------
    rings : mapping of str to callable, or None
        Title -> function, see :class:`OwnRings`. None gives no function.

    Raises
    ------
    HybridLabError
        ``rings`` is not a mapping, a title is wrong, or a value is not a function.
    """
    if not isinstance(rings, Mapping | None):
        raise HybridLabError(
            f"rings must be functions by title, such as {{'mine': overlapped_rings}}, not {short_repr(rings)}", "wrong-type"
        )
    for title, function in (rings or {}).items():
        if checked_title(title) in ("true", "false"):  # in a link, these words are the other values of the trait overlap
            raise HybridLabError(f"{title!r} is another way in which rings can run: choose another title", "duplicate-name")
        if not callable(function):
            wanted = f"{title!r} must stand for a function of rows and ring_time"
            raise HybridLabError(f"{wanted}, not {short_repr(function)}", "wrong-type")
    return {title: OwnRings(title, function) for title, function in (rings or {}).items()}


def _stages_of_ranks(spans: Spans) -> dict[int, set[int]]:
    """Return the stages in whose rings each rank takes part."""
    stages: dict[int, set[int]] = {}
    hops = spans.of("reduce-scatter")
    for rank, stage in zip(hops.device.tolist(), hops.stage.tolist(), strict=True):
        stages.setdefault(rank, set()).add(stage)
    return stages


def _moved(step: HybridStep, spans: Spans, edges: Floats) -> HybridStep:
    """Return the step with its rings at other times. An optimiser starts when the last ring of its rank has ended."""
    start, end = spans.start.copy(), spans.end.copy()
    hops = np.flatnonzero(np.isin(spans.kind, (REDUCE_SCATTER, ALL_GATHER)))
    first, last = edges[:, spans.stage[hops]]
    half = spans.step.max() + 1  # number of steps of a reduce-scatter, and of an all-gather
    turn = spans.step[hops] + half * (spans.kind[hops] == ALL_GATHER)
    start[hops], end[hops] = (first + (last - first) * each / (2 * half) for each in (turn, turn + 1))
    updates = np.flatnonzero(spans.kind == OPTIMISER)
    stages = _stages_of_ranks(spans)
    done = np.array([max(edges[1, stage] for stage in stages[rank]) for rank in spans.device[updates].tolist()])
    start[updates], end[updates] = done, done + (spans.end - spans.start)[updates]
    timeline = replace(step.timeline, spans=replace(spans, start=start, end=end))
    return replace(step, timeline=timeline, exposed_communication=float(edges[1].max() - step.timeline.end.max()))
