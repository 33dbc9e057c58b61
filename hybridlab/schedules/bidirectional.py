"""Schedules with microbatches in two directions: Chimera, DualPipe and DualPipeV.

Chimera and DualPipe have two copies of the weights. Half of the microbatches enter at the first device, and half at the last device.
DualPipeV is by Sea AI Lab. It has half as many devices as DualPipe, and one copy of the weights. A device holds two chunks of this copy.
DualPipe and DualPipeV run a forward and a backward at the same time, so that the messages of the forward travel while the device computes
the backward, and the other way round.
"""

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedule.grid import NONE, slots_in_order
from hybridlab.schedules.registry import register

# The operations in a device's program, in DualPipe and DualPipeV. The digit is the side, 0 or 1. In DualPipeV a side is one of the two
# chunks, in DualPipe one of the two copies of the weights. F is a forward, B a full backward, I an input gradient. W is a weight gradient
# of either side: weight gradients run in the order of their input gradients.
F0, F1, B0, B1, I0, I1, W = range(7)
SIDE = np.array([0, 1, 0, 1, 0, 1, 0])  # the side of F0, F1, B0, ...; for W it is not used: W has the side of its input gradient
PLANE = np.array([0, 0, 1, 1, 1, 1, 2])  # the plane of F0, F1, B0, ... in the grid of slots
PADDING = (NONE, NONE)


@register(
    "chimera",
    title="Chimera",
    summary="two copies of the weights: of every K microbatches half enter at each end, and each half runs in the other's gaps",
    source="Li and Hoefler, SC 2021, arXiv 2107.06925, fig. 3 and Table 2; groups K slots apart, where sec. 3.5 joins them 2K apart",
    whole_groups=True,
    bidirectional=True,
)
def chimera(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of Chimera, shape (2, 2 * devices, microbatches): first the stages of one copy, then of the other.

    Take K devices. The first half of each group of K microbatches runs from device 0 to device K-1 ("down"), and the second half runs from
    device K-1 to device 0 ("up"). On device d, the forwards of the first half take the slots d, d+2, d+4, ... The forwards of the second
    half take the slots K-1-d, K+1-d, ... K is even, so one half has even slots and the other half has odd slots. On its last device, a
    microbatch runs its backward right after its forward.

    A group begins K slots after the group before it. If two operations of a device get the same slot, the backward comes first, because it
    belongs to the older group. In sec. 3.5 of the paper, groups begin 2K slots apart, and no two operations get the same slot. With that
    distance, groups would wait for each other if backwards and forwards take unequal times.

    Examples
    --------
    >>> chimera(2, 2, 1)[0].tolist(), chimera(2, 2, 1)[1].tolist()
    ([[1, -1], [3, -1], [-1, 1], [-1, 3]], [[6, -1], [4, -1], [-1, 6], [-1, 4]])
    """
    stage, microbatch = np.ogrid[:devices, :microbatches]
    group, place = np.divmod(microbatch, devices)
    enters = devices * group + 2 * (place % (devices // 2))
    forward, backward = 2 * (enters + stage) + 1, 2 * (enters + 2 * devices - 1 - stage)
    copy = place // (devices // 2)  # the second half of a group uses the second copy: its stages run from the last device to the first
    return np.stack([[np.where(copy == each, slots, -1) for each in range(2)] for slots in (forward, backward)]).reshape(
        2, 2 * devices, microbatches
    )


@register(
    "dualpipe-v",
    title="DualPipeV",
    summary="stages folded into a V; in the steady state every forward is overlapped with the backward of the other chunk",
    source="Sea AI Lab, 2025 (cut-in-half), from DualPipe, DeepSeek-AI, arXiv 2412.19437; the order of DeepSeek's public program",
    placement="folded",
    fewest_chunks=2,
    min_microbatches_per_device=2,
)
def dualpipe_v(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of DualPipeV, shape (3, 2 * devices, microbatches).

    Two operations of a device with the same slot are an overlapped pair: a forward of one chunk and a full backward of the other chunk. The
    first and the last backwards are split, so that weight gradients fill idle time.

    Examples
    --------
    >>> dualpipe_v(1, 2, 2)[:, 0].tolist()
    [[0, 2], [4, 6], [-1, 7]]
    """
    device = np.arange(devices)
    line_of = np.stack([device, 2 * devices - 1 - device], axis=1)  # the stages of a device's two chunks
    programs = [_program(devices, microbatches, each) for each in range(devices)]
    return slots_in_order(_turn_places(programs, line_of, 0 * line_of, microbatches).tolist(), (3, 2 * devices, microbatches))


@register(
    "dualpipe",
    title="DualPipe",
    summary="two copies of the weights, half of the microbatches from either end; forwards of one half overlap backwards of the other",
    source="DeepSeek-AI, DeepSeek-V3, arXiv 2412.19437, sec. 3.2.1, fig. 5 and Table 2",
    min_microbatches_per_device=2,
    bidirectional=True,
)
def dualpipe(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of DualPipe, shape (3, 2 * devices, microbatches): first the stages of one copy, then of the other.

    Take K devices, M microbatches and d < K/2. Device d and device K-1-d both run the program of device d in DualPipeV with K/2 devices and
    M/2 microbatches. An operation on one of the two chunks in DualPipeV becomes an operation on one of the two copies of the weights.

    Examples
    --------
    >>> dualpipe(2, 4, 1)[0].tolist()
    [[0, 2, -1, -1], [1, 4, -1, -1], [-1, -1, 0, 2], [-1, -1, 1, 4]]
    """
    device = np.arange(devices)
    down, up = device, 2 * devices - 1 - device  # the line of the device's stage in the grid: in the first copy, in the second copy
    from_near = np.where(device < devices // 2, [down, up], [up, down]).T  # side 0 is the copy whose microbatches enter at the nearer end
    half = microbatches // 2  # microbatches 0 to half - 1 enter at device 0, the other microbatches at device K-1
    programs = [_program(devices // 2, half, each) for each in range(devices // 2)]
    turns = _turn_places(programs + programs[::-1], from_near, half * (from_near >= devices), microbatches)
    return slots_in_order(turns.tolist(), (3, 2 * devices, microbatches), copies=2)


def _program(devices: int, microbatches: int, device: int) -> list[tuple[int, int]]:
    """Return a device's program in DualPipeV as turns: (operation, ``NONE``), or the two operations of an overlapped pair."""
    after = devices - 1 - device  # the number of devices from this device to the last device, where the V turns
    steady = [(F0, B1), (F1, B0)] * (microbatches - devices - after)
    if not after:
        # The first two operations of the last device are not a pair, because the other devices wait for the backward.
        steady[:1] = [(F0, NONE), (B1, NONE)]
    last = [(B1, NONE), (B0, NONE)] * (device + 1)
    # The second half of these backwards is split, so that weight gradients fill the idle time at the end.
    last[device + 1 :] = [(I1 if turn[0] == B1 else I0, NONE) for turn in last[device + 1 :]]
    return [
        *[(F0, NONE)] * (2 * after),
        *[(F0, NONE), (F1, NONE)] * (device + 1),
        *[(I1, NONE), (W, NONE), (F1, NONE)] * after,
        *steady,
        *[(B1, NONE), (F1, B0)] * after,
        *last,
        *[(W, NONE), (I0, NONE)] * after,
        *[(W, NONE)] * (device + 1),
    ]


def _turn_places(programs: list[list[tuple[int, int]]], line_of: Ints, begin: Ints, microbatches: int) -> Ints:
    """Return the turns of all devices as indices into the flattened grid of slots, shape (devices, turns, 2).

    ``line_of`` and ``begin`` have shape (devices, 2). For each device and side, ``line_of`` has the line of the grid and ``begin`` the
    first microbatch. The forwards of a side run microbatch after microbatch, and so do the backwards. Weight gradients run in the order of
    their input gradients.
    """
    longest = max(map(len, programs))
    ops = np.array([program + [PADDING] * (longest - len(program)) for program in programs]).reshape(len(programs), -1)
    side, plane, device = SIDE[ops], PLANE[ops], np.arange(len(programs))[:, None]
    microbatch = np.zeros_like(ops)  # counted from ``begin``
    for entries in ([F0], [F1], [B0, I0], [B1, I1]):
        chosen = np.isin(ops, entries)
        microbatch[chosen] = (np.cumsum(chosen, axis=1) - 1)[chosen]
    plane_size = 2 * len(programs) * microbatches
    places: Ints = plane * plane_size + line_of[device, side] * microbatches + begin[device, side] + microbatch
    places[ops == W] = places[np.isin(ops, [I0, I1])] + plane_size
    places[ops == NONE] = NONE
    return places.reshape(len(programs), longest, 2)
