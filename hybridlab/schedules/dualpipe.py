"""DualPipe and DualPipeV: a forward and a backward at the same time, so that the messages of one hide behind the other."""

import numpy as np

from hybridlab.arrays import Ints
from hybridlab.schedule.grid import NONE, slots_in_order
from hybridlab.schedules.registry import register

# What a device runs: forward, full backward and input gradient of either side, and the oldest weight gradient that waits. A side is
# a chunk of DualPipeV, and for DualPipe one of the two copies of the weights.
F0, F1, B0, B1, I0, I1, W = range(7)
SIDE = np.array([0, 1, 0, 1, 0, 1, 0])
PLANE = np.array([0, 0, 1, 1, 1, 1, 2])  # of the slots
NOTHING = (NONE, NONE)


@register(
    "dualpipe-v",
    title="DualPipeV",
    summary="stages folded into a V; in the steady state every forward is overlapped with the backward of the other chunk",
    source="DeepSeek-AI, DeepSeek-V3, arXiv 2412.19437, sec. 3.2.1; cut in half as in its published program",
    placement="folded",
    fewest_chunks=2,
    min_microbatches_per_device=2,
)
def dualpipe_v(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of DualPipeV, shape (3, 2 * devices, microbatches).

    The operations of both in one slot are an overlapped pair: a forward of one chunk and a full backward of the other. The
    first backwards and the last ones are split, so that weight gradients fill what would be idle.

    >>> dualpipe_v(1, 2, 2)[:, 0].tolist()
    [[0, 2], [4, 6], [-1, 7]]
    """
    device = np.arange(devices)
    line_of = np.stack([device, 2 * devices - 1 - device], axis=1)
    programs = [_program(devices, microbatches, each) for each in range(devices)]
    return slots_in_order(_places(programs, line_of, 0 * line_of, microbatches).tolist(), (3, 2 * devices, microbatches))


@register(
    "dualpipe",
    title="DualPipe",
    summary="two copies of the weights, half of the microbatches from either end; forwards of one half overlap backwards of the other",
    source="DeepSeek-AI, DeepSeek-V3, arXiv 2412.19437, sec. 3.2.1, fig. 5 and Table 2",
    min_microbatches_per_device=2,
    bidirectional=True,
)
def dualpipe(devices: int, microbatches: int, chunks: int) -> Ints:
    """Return the slots of DualPipe, shape (3, 2 * devices, microbatches), the stages of one copy after those of the other.

    Device d and device K-1-d run what device d of DualPipeV runs with half the devices and half the microbatches: what there are
    its two chunks are here the two copies of the weights.

    >>> dualpipe(2, 4, 1)[0].tolist()
    [[0, 2, -1, -1], [1, 4, -1, -1], [-1, -1, 0, 2], [-1, -1, 1, 4]]
    """
    device = np.arange(devices)
    down, up = device, 2 * devices - 1 - device  # the line of slots of the stage that it has in the first copy, in the second
    from_near = np.where(device < devices // 2, [down, up], [up, down]).T  # side 0 are the microbatches from the nearer end
    half = microbatches // 2
    programs = [_program(devices // 2, half, each) for each in range(devices // 2)]
    turns = _places(programs + programs[::-1], from_near, half * (from_near >= devices), microbatches)
    return slots_in_order(turns.tolist(), (3, 2 * devices, microbatches), copies=2)


def _program(devices: int, microbatches: int, device: int) -> list[tuple[int, int]]:
    """Return what a device runs, turn by turn: one operation and ``NONE``, or an overlapped pair."""
    after = devices - 1 - device  # devices between this one and the turn of the V
    steady = [(F0, B1), (F1, B0)] * (microbatches - devices - after)
    if not after:
        steady[:1] = [(F0, NONE), (B1, NONE)]  # where the V turns, the other devices wait for the first backward
    last = [(B1, NONE), (B0, NONE)] * (device + 1)
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


def _places(programs: list[list[tuple[int, int]]], line_of: Ints, begin: Ints, microbatches: int) -> Ints:
    """Return the turns of all devices as places in the grid of slots, shape (devices, turns, 2).

    ``line_of`` has the line of each device and side, ``begin`` its first microbatch. The forwards of a side run from the first
    microbatch to the last, its backwards too, and the weight gradients in the order of their input gradients.
    """
    longest = max(map(len, programs))
    ops = np.array([program + [NOTHING] * (longest - len(program)) for program in programs]).reshape(len(programs), -1)
    side, plane, device = SIDE[ops], PLANE[ops], np.arange(len(programs))[:, None]
    before = np.zeros_like(ops)
    for same in ([F0], [F1], [B0, I0], [B1, I1]):
        of_these = np.isin(ops, same)
        before[of_these] = (np.cumsum(of_these, axis=1) - 1)[of_these]
    plane_size = 2 * len(programs) * microbatches
    places: Ints = plane * plane_size + line_of[device, side] * microbatches + begin[device, side] + before
    places[ops == W] = places[np.isin(ops, [I0, I1])] + plane_size
    places[ops == NONE] = NONE
    return places.reshape(len(programs), longest, 2)
