"""The times of operations and messages, computed from a timeline."""

import math
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, Ints
from hybridlab.checks import one_time, short_repr, true_or_false
from hybridlab.costs.checking import checked_per
from hybridlab.errors import HybridLabError
from hybridlab.schedule import B, F, Operations, W


class Timed(Protocol):
    """The attributes of a timeline that this file reads. ``Timeline`` cannot be imported, because it is on a higher floor."""

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


def observe_costs(timeline: Timed, per: str | tuple[str, str], links: bool, weight_share: float) -> dict[str, Any]:
    """Return the arguments of :class:`Costs` from a timeline. See :meth:`Costs.from_timeline`.

    Raises
    ------
    HybridLabError
        ``timeline`` is not a timeline of one setting, ``weight_share`` is above 1, the times are per device and the first stages are not
        on devices 0, 1, 2, ... (``other-placement``), or the times are per microbatch and the schedule has overlapped pairs.
    """
    if not all(hasattr(timeline, name) for name in ("schedule", "start", "end", "unit")):
        raise HybridLabError(f"from_timeline takes a Timeline, such as simulate(...) returns, not {short_repr(timeline)}", "wrong-type")
    if timeline.start.ndim > 1:
        settings = timeline.start.shape[:-1]
        raise HybridLabError(
            f"from_timeline() reads one setting, but this timeline holds {settings}: pick one with at()", "several-settings"
        )
    per, links = checked_per(per), true_or_false(links, "links")
    share = one_time(weight_share, "weight_share")
    if share > 1:
        raise HybridLabError(f"weight_share must be a share of the backward, from 0 to 1, not {share}", "out-of-range")
    schedule, takes = timeline.schedule, timeline.end - timeline.start
    place, shape, parts = _places(schedule, per)
    count = math.prod(shape)
    # The times alone come from operations outside overlapped pairs. There are always some: the first forward and the last backward of a
    # stage cannot be in a pair.
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
        "forward": forward.reshape(shape),
        "backward": whole.reshape(shape),
        "weight_share": np.minimum(shares, 1.0).reshape(shape),  # rounding can make a share larger than 1
        "unit": timeline.unit,
        "per": per,
    }
    pair = takes[schedule.pairs], forward[place[schedule.pairs]] / parts, whole[place[schedule.pairs + 1]] / parts
    found |= {"overlap": _saved_share(*pair), **_latencies(schedule, timeline.start, timeline.end, links)}
    return found


def _places(schedule: Operations, per: str | tuple[str, str]) -> tuple[Ints, tuple[int, ...], int]:
    """Return, for each operation, the index of its time; the shape of the times; and the number of operations that a time is for."""
    words = (per,) if isinstance(per, str) else per
    visited = list(dict.fromkeys(schedule.device_of))
    if "device" in words and visited != sorted(visited):
        # Other schedules have stage 0 on device 0, so they would give the time of one stage to another.
        message = "times per device need the first stages on devices 0, 1, 2, ..."
        message += f", but here stages 0, 1, ... are on devices {short_repr(visited)}"
        raise HybridLabError(f"{message}: take per='stage'", "other-placement")
    if "microbatch" in words and schedule.pairs.size:
        message = "the operations of an overlapped pair run together, so their times for each microbatch cannot be seen"
        raise HybridLabError(f"{message}: take per='device' or per='stage'", "overlapped-pairs")
    columns = {"device": schedule.device, "stage": schedule.stage, "microbatch": schedule.microbatch}
    counts = {"device": schedule.devices, "stage": schedule.stages, "microbatch": schedule.microbatches}
    shape = tuple(counts[word] for word in words)
    place: Ints = np.ravel_multi_index([columns[word] for word in words], shape)
    # the time of a device is the time of all its chunks
    return place, shape, 1 if "stage" in words else schedule.chunks


def _medians(times: Floats, place: Ints, count: int) -> Floats:
    """Return the median of the times at each place, shape (count,). NaN for a place without times."""
    order = np.argsort(place, kind="stable")  # sorts the times by place
    groups = np.split(times[order], np.searchsorted(place[order], np.arange(1, count)))
    return np.array([np.median(group) if group.size else np.nan for group in groups])


def _saved_share(together: Floats, forward: Floats, backward: Floats) -> float:
    """Return the share of the shorter operation that an overlapped pair saves: the median of all pairs, or 0 without pairs."""
    shorter = np.minimum(forward, backward)
    saves = (forward + backward - together)[shorter > 0] / shorter[shorter > 0]
    return float(np.clip(np.median(saves), 0.0, 1.0)) if saves.size else 0.0  # measured times can give a share outside 0 to 1


def _latencies(schedule: Operations, start: Floats, end: Floats, links: bool) -> dict[str, Any]:
    """Return the argument ``p2p`` of :class:`Costs`, or with ``links`` the argument ``p2p_between``.

    ``p2p_between`` is a list if only neighbours send messages and both directions of each link have the same latency. Otherwise it is a
    matrix.
    """
    rows, gaps = message_gaps(schedule, start, end)
    one = smallest_gap(gaps, _was_idle(schedule, start, end)[rows])
    if not links or schedule.devices == 1:
        return {"p2p": one}
    between = link_latencies(schedule, start, end)
    used = np.isfinite(between)
    between[~used] = np.median(between[used]) if used.any() else 0.0  # links without a message here: another schedule may use them
    np.fill_diagonal(between, 0.0)
    sender, receiver = np.nonzero(used)
    # simulated latencies of both directions can differ by rounding, so differences below 1e-9 do not count
    if (np.abs(sender - receiver) == 1).all() and np.allclose(between, between.T, rtol=1e-9, atol=0):
        return {"p2p_between": np.diag(between, 1)}
    return {"p2p_between": between}


def message_gaps(schedule: Operations, start: Floats, end: Floats) -> tuple[Ints, Floats]:
    """Return the rows of the operations that need a message, and for each the gap: its start minus the end of the sender's operation."""
    rows = np.flatnonzero(schedule.crosses)
    return rows, np.maximum(start[rows] - end[schedule.source[rows]], 0.0)  # clocks that disagree can give a negative gap


def smallest_gap(gaps: Floats, idle: npt.NDArray[np.bool_]) -> float:
    """Return the latency of messages with these ``gaps``: the smallest gap, or 0 if no receiver was ``idle``.

    If a receiver was busy, its gap can be longer than the latency, but not shorter. So the smallest of all gaps is taken.

    >>> smallest_gap(np.array([5.0, 2.0, 9.0]), np.array([True, False, True]))
    2.0
    """
    return float(gaps.min()) if idle.any() else 0.0


def link_latencies(schedule: Operations, start: Floats, end: Floats) -> Floats:
    """Return the latency from each device to each other device, shape (devices, devices). Infinity for a link without messages.

    The latency of a link is its smallest gap. If the receiver was never idle, this gap can be too long. Then the latency is at most the
    latency of the fastest link.
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
    """Return, for each operation, whether its device was idle just before the operation."""
    before = schedule.before
    idle: npt.NDArray[np.bool_] = start > np.where(before >= 0, end[before], -np.inf)
    return idle
