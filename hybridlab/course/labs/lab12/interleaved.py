"""The coding task ('build') of lab 12 in which a student writes interleaved 1F1B.

This file has the sizes of its cases, the known mistakes and the changes of the task ('twists').
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from hybridlab.checks import counted
from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.twists import Example, Twist
from hybridlab.course.labs.lab02.one_f_one_b import order_twists
from hybridlab.schedule import Schedule
from hybridlab.schedules import build

SIZES = [(1, 1, 1), (1, 1, 2), (1, 3, 1), (2, 2, 1), (1, 2, 3), (2, 2, 2), (2, 4, 1), (2, 4, 2), (3, 3, 2)]  # devices, microbatches, chunks
LARGEST = (8, 24, 3)  # the picture shows the order of this size, and a larger one would have too many operations for it
DRAWN = 18  # the number of further, random sizes


def sizes_of_chunks(rng: np.random.Generator) -> Iterator[Case]:
    """Yield fixed and random sizes, from one device with one microbatch and one chunk up."""
    drawn = set[tuple[int, int, int]]()
    while len(drawn) < DRAWN:
        devices, groups, chunks = (int(rng.integers(*limits)) for limits in ((2, 10), (1, 6), (1, 7)))
        if devices**2 * groups * chunks < math.prod(LARGEST):
            drawn.add((devices, groups * devices, chunks))
    for devices, microbatches, chunks in sorted({*SIZES, *drawn, LARGEST}, key=lambda size: (size[0] * size[1] * size[2], size)):
        words = f"{counted(devices, 'device')}, {counted(microbatches, 'microbatch')} and {counted(chunks, 'chunk')} a device"
        yield Case((devices, microbatches, chunks), words)


def goal_of(devices: int, microbatches: int, chunks: int) -> Schedule:
    """Return the library's interleaved 1F1B. With one chunk on each device, interleaved 1F1B is eager 1F1B.

    >>> print(goal_of(2, 2, 1))
    device 0: 0F0 0F1 0B0 0B1
    device 1: 1F0 1B0 1F1 1B1
    """
    if chunks == 1:
        return build("eager-1f1b", devices, microbatches)
    return build("interleaved", devices, microbatches, chunks)


class Size(NamedTuple):
    """The arguments of a case."""

    devices: int
    microbatches: int
    chunks: int


Ops = list[tuple[int, int]]  # chunk and microbatch of each forward, or of each backward, in the order of a device
Warmup = Callable[[int, Size], int]  # takes a device and the size, and returns the forwards of its warm-up
Place = Callable[[int, int, Size], int]  # takes a chunk, a device and the size, and returns the stage


def _in_groups(size: Size, length: int, last_chunk_first: bool) -> Ops:
    """Return the operations of one kind. Groups of ``length`` microbatches go through one chunk after the other."""
    chunks = range(size.chunks)[::-1] if last_chunk_first else range(size.chunks)
    starts = range(0, size.microbatches, length)
    return [(chunk, start + place) for start in starts for chunk in chunks for place in range(min(length, size.microbatches - start))]


def _looped(chunk: int, device: int, size: Size) -> int:
    return chunk * size.devices + device


def _written_in_groups(
    warmup: Warmup,
    place: Place = _looped,
    group: Callable[[Size], int] = lambda size: size.devices,
    last_chunk_first: bool = True,
    cool_down: bool = True,
    backward_first: bool = False,
) -> Callable[[int, int, int], list[str]]:
    """Return a function that writes wrong orders: interleaved 1F1B with the changes that the arguments say."""

    def lines(*arguments: int) -> list[str]:
        size = Size(*arguments)
        orders = []
        for device in range(size.devices):
            forwards, backwards = (
                [f"{place(chunk, device, size)}{kind}{microbatch}" for chunk, microbatch in _in_groups(size, group(size), turned)]
                for kind, turned in (("F", False), ("B", last_chunk_first))
            )
            ahead = min(max(warmup(device, size), 0), len(forwards))
            line = forwards[:ahead]
            for forward, backward in zip(forwards[ahead:], backwards, strict=False):
                line += [backward, forward] if backward_first else [forward, backward]
            orders.append(" ".join(line + backwards[len(forwards) - ahead :] * cool_down))
        return orders

    return lines


def _ahead(device: int, size: Size) -> int:
    return 2 * (size.devices - 1 - device) + (size.chunks - 1) * size.devices


def _folded(chunk: int, device: int, size: Size) -> int:
    return chunk * size.devices + (size.devices - 1 - device if chunk % 2 else device)


def _one_f_one_b(devices: int, microbatches: int, chunks: int) -> str:
    return str(build("1f1b", devices, microbatches))


def _breadth_first(devices: int, microbatches: int, chunks: int) -> str:
    return str(build("gpipe", devices, microbatches) if chunks == 1 else build("looped-bfs", devices, microbatches, chunks))


MISTAKES = (
    KnownMistake("no-chunks", "this is 1F1B with one stage on each device: with v chunks the model has vK stages", _one_f_one_b),
    KnownMistake(
        "one-chunk-as-1f1b",
        "with one chunk this is 1F1B: with v = 1, too, the warm-up has 2(K-1-d) + (v-1)K forwards, twice as many as under 1F1B",
        lambda *size: _one_f_one_b(*size) if size[-1] == 1 else str(goal_of(*size)),
    ),
    KnownMistake(
        "breadth-first",
        "this is looped BFS, which takes all M microbatches through a chunk: interleaved 1F1B goes to the next chunk after K microbatches",
        _breadth_first,
    ),
    KnownMistake(
        "warm-up-of-1f1b",
        "your warm-up counts K-1-s once, as 1F1B does, where s is the first stage of a device: here there are 2(K-1-s) + (v-1)K forwards",
        _written_in_groups(lambda device, size: size.devices - 1 - device + (size.chunks - 1) * size.devices),
    ),
    KnownMistake(
        "no-forwards-for-the-chunks",
        "your warm-up lacks (v-1)K forwards: the first group must go through all chunks before its first backward",
        _written_in_groups(lambda device, size: 2 * (size.devices - 1 - device)),
    ),
    KnownMistake(
        "one-chunk-too-many",
        "your warm-up has vK forwards for the chunks, K too many: the forwards of the last chunk belong to the pairs",
        _written_in_groups(lambda device, size: 2 * (size.devices - 1 - device) + size.chunks * size.devices),
    ),
    KnownMistake(
        "warm-up-too-long",
        "your warm-up is one forward too long: the first pair begins with another forward",
        _written_in_groups(lambda device, size: _ahead(device, size) + 1),
    ),
    KnownMistake(
        "warm-up-too-short",
        "your warm-up is one forward too short",
        _written_in_groups(lambda device, size: _ahead(device, size) - 1),
    ),
    KnownMistake(
        "same-warm-up",
        "all your devices have the same warm-up: it gets shorter by 2 from each stage of the first chunk to the next",
        _written_in_groups(lambda device, size: _ahead(0, size)),
    ),
    KnownMistake(
        "reversed-warm-up",
        "your warm-up grows with the first stage of a device: the device with stage 0 has the longest one",
        _written_in_groups(lambda device, size: _ahead(size.devices - 1 - device, size)),
    ),
    KnownMistake(
        "all-forwards-first",
        "your devices run all forwards before the first backward: after its warm-up a device alternates",
        _written_in_groups(lambda device, size: size.chunks * size.microbatches),
    ),
    KnownMistake(
        "first-chunk-first",
        "your backwards begin with the first chunk: a backward needs the gradient of the next stage, so the last chunk comes first",
        _written_in_groups(_ahead, last_chunk_first=False),
    ),
    KnownMistake(
        "one-microbatch-at-a-time",
        "your forwards take one microbatch through all chunks before the next one: here K microbatches go through a chunk together",
        _written_in_groups(_ahead, group=lambda size: 1),
    ),
    KnownMistake(
        "no-groups",
        "your chunks take all M microbatches, one chunk after the other: here a group of K microbatches goes through all chunks first",
        _written_in_groups(_ahead, group=lambda size: size.microbatches),
    ),
    KnownMistake(
        "folded",
        "your stages are folded, as in Hanayo: here the chunks of a device are K stages apart",
        _written_in_groups(_ahead, place=_folded),
    ),
    KnownMistake(
        "stages-in-a-row",
        "your devices have v stages in a row: here the chunks of a device are K stages apart",
        _written_in_groups(_ahead, place=lambda chunk, device, size: device * size.chunks + chunk),
    ),
    KnownMistake(
        "backward-first",
        "your pairs run the backward before the forward: in a pair the forward comes first",
        _written_in_groups(_ahead, backward_first=True),
    ),
    KnownMistake(
        "no-cool-down",
        "your order ends after the last pair: the backwards that are left are missing",
        _written_in_groups(_ahead, cool_down=False),
    ),
)

EXAMPLES = (
    Example((1, 2, 2), ["0F0 1F0 1B0 0F1 0B0 1F1 1B1 0B1"]),
    Example((2, 2, 2), ["0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1", "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1"]),
)
TWISTS = (
    *order_twists("chunk c of device d is stage cK +"),
    Twist("chunks-first", "the function is called as interleaved(chunks, devices, microbatches)", order=(2, 0, 1)),
)
