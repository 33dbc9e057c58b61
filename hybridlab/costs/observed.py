"""The times of operations and messages, taken from a timeline."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import known_name, one_time, short_repr, true_or_false
from hybridlab.errors import HybridLabError
from hybridlab.schedule import B, F, Operations, W


class Timed(Protocol):
    """The attributes of a timeline that are read here; ``Timeline`` itself is in a module above this one."""

    @property
    def schedule(self) -> Operations:
        """The operations."""

    @property
    def start(self) -> Floats:
        """The start of each operation, shape (operations,)."""

    @property
    def end(self) -> Floats:
        """The end of each operation, shape (operations,)."""

    @property
    def unit(self) -> str | None:
        """The unit of the times."""


def observe_costs(timeline: Timed, per: str, links: bool, weight_share: float) -> dict[str, Any]:
    """Return the arguments of :class:`Costs` that a timeline shows; see :meth:`Costs.from_timeline`.

    Raises
    ------
    HybridLabError
        ``timeline`` is not a timeline of one setting, or ``weight_share`` is above 1.
    """
    if not all(hasattr(timeline, name) for name in ("schedule", "start", "end", "unit")):
        raise HybridLabError(f"from_timeline takes a Timeline, such as simulate(...) returns, not {short_repr(timeline)}", "wrong-type")
    if timeline.start.ndim > 1:
        settings = timeline.start.shape[:-1]
        raise HybridLabError(
            f"from_timeline() reads one setting, but this timeline holds {settings}: pick one with at()", "several-settings"
        )
    per, links = known_name(per, ("device", "stage"), "value of per"), true_or_false(links, "links")
    share = one_time(weight_share, "weight_share")
    if share > 1:
        raise HybridLabError(f"weight_share is a part of the backward, from 0 to 1, not {share}", "out-of-range")
    schedule, takes = timeline.schedule, timeline.end - timeline.start
    place = schedule.device if per == "device" else schedule.stage
    parts = schedule.chunks if per == "device" else 1  # the time of a device is that of all its chunks
    count = schedule.devices if per == "device" else schedule.stages
    # The first forward and the last backward of a stage run alone: the other operation of a pair would need them first.
    alone = np.ones(schedule.kind.size, dtype=np.bool_)
    alone[schedule.pairs] = alone[schedule.pairs + 1] = False
    forwards, full = (np.flatnonzero((schedule.kind == kind) & alone) for kind in (F, B))
    weights = np.flatnonzero(schedule.kind == W)
    split = takes[weights] + takes[schedule.source[weights]]  # the source of a weight gradient is its input gradient
    forward = parts * _medians(takes[forwards], place[forwards], count)
    whole = parts * _medians(np.append(takes[full], split), place[np.append(full, weights)], count)
    both, part = _medians(split, place[weights], count), _medians(takes[weights], place[weights], count)
    shares = np.where(both > 0, np.divide(part, both, out=np.full(count, share), where=both > 0), share)
    found: dict[str, Any] = {
        "forward": forward,
        "backward": whole,
        "weight_share": np.minimum(shares, 1.0),  # rounding can make a share larger than 1
        "unit": timeline.unit,
        "per": per,
    }
    pair = takes[schedule.pairs], forward[place[schedule.pairs]] / parts, whole[place[schedule.pairs + 1]] / parts
    found |= {"overlap": _saved_share(*pair), **_latencies(schedule, timeline.start, timeline.end, links)}
    return found


def _medians(times: Floats, place: Ints, count: int) -> Floats:
    """Return the median of the times at each place, shape (count,); NaN where there are none."""
    order = np.argsort(place, kind="stable")  # the times of one place then stand together
    groups = np.split(times[order], np.searchsorted(place[order], np.arange(1, count)))
    return np.array([np.median(group) if group.size else np.nan for group in groups])


def _saved_share(together: Floats, forward: Floats, backward: Floats) -> float:
    """Return the part of the shorter operation that an overlapped pair saves, the median of all pairs; 0 if there are no pairs."""
    shorter = np.minimum(forward, backward)
    saves = (forward + backward - together)[shorter > 0] / shorter[shorter > 0]
    return float(np.clip(np.median(saves), 0.0, 1.0)) if saves.size else 0.0  # measured times can give a share outside 0 to 1


def _latencies(schedule: Operations, start: Floats, end: Floats, links: bool) -> dict[str, Any]:
    """Return ``p2p``, or ``p2p_between`` as a list if only neighbours send messages and both directions are alike, or as a matrix."""
    rows, gaps = message_gaps(schedule, start, end)
    one = smallest_gap(gaps, _was_idle(schedule, start, end)[rows])
    if not links or schedule.devices == 1:
        return {"p2p": one}
    between = link_latencies(schedule, start, end)
    used = np.isfinite(between)
    between[~used] = np.median(between[used]) if used.any() else 0.0  # another schedule may use these links
    np.fill_diagonal(between, 0.0)
    sender, receiver = np.nonzero(used)
    # 1e-9: times of a simulation differ by rounding alone
    if (np.abs(sender - receiver) == 1).all() and np.allclose(between, between.T, rtol=1e-9, atol=0):
        return {"p2p_between": np.diag(between, 1)}
    return {"p2p_between": between}


def message_gaps(schedule: Operations, start: Floats, end: Floats) -> tuple[Ints, Floats]:
    """Return the operations that need a message, and the time from the end of the sender's operation to their start."""
    rows = np.flatnonzero(schedule.crosses)
    return rows, np.maximum(start[rows] - end[schedule.source[rows]], 0.0)  # clocks that differ can make a gap negative


def smallest_gap(gaps: Floats, idle: npt.NDArray[np.bool_]) -> float:
    """Return the latency of messages with these ``gaps``: the smallest gap whose receiver was ``idle``; 0 if there is none.

    No gap can be shorter than the message, so a shorter gap of a receiver that was busy counts as well.

    >>> smallest_gap(np.array([5.0, 2.0, 9.0]), np.array([True, False, True]))
    2.0
    """
    return float(gaps.min()) if idle.any() else 0.0


def link_latencies(schedule: Operations, start: Floats, end: Floats) -> Floats:
    """Return the latency from each device to each other, shape (devices, devices); infinity where no message goes.

    A link on which the receiver was never idle has the latency of the fastest link, but no more than its own smallest gap.
    """
    rows, gaps = message_gaps(schedule, start, end)
    idle = _was_idle(schedule, start, end)[rows]
    link = schedule.device[schedule.source[rows]], schedule.device[rows]
    between, waited = np.full((2, schedule.devices, schedule.devices), np.inf)
    np.minimum.at(between, link, gaps)
    np.minimum.at(waited, tuple(ends[idle] for ends in link), gaps[idle])
    unknown = np.isfinite(between) & ~np.isfinite(waited)
    between[unknown] = np.minimum(between[unknown], smallest_gap(gaps, idle))
    return between


def _was_idle(schedule: Operations, start: Floats, end: Floats) -> npt.NDArray[np.bool_]:
    """Return for each operation whether its device had nothing to do just before it."""
    before = schedule.before
    idle: npt.NDArray[np.bool_] = start > np.where(before >= 0, end[before], -np.inf)
    return idle
