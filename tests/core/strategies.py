"""Define hypothesis strategies for sizes, costs and orders of operations; sizes come from the registry's own data."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from hypothesis import strategies as st
from oracle import Node, Setting, inputs, nodes, uniform

from hybridlab import REGISTRY, Costs, Schedule, build

MOST_DEVICES = 6
MOST_OPS = 400  # small, so that one example takes only milliseconds


@dataclass(frozen=True)
class Size:
    """The size of a schedule that the registry supports."""

    name: str
    devices: int
    microbatches: int
    chunks: int

    def build(self) -> Schedule:
        return build(self.name, self.devices, self.microbatches, self.chunks)


def supported(name: str, devices: int, microbatches: int) -> tuple[int, int]:
    """Return the nearest size that the schedule supports.

    It is the given size if the schedule supports it. Otherwise it has one device more, and then the next supported number of microbatches.
    """
    family = REGISTRY[name]
    devices += family.bidirectional * devices % 2
    return devices, next(more for more in count(microbatches) if family.refusal(devices, more, family.fewest_chunks) is None)


@st.composite
def sizes(draw: st.DrawFn, name: str | None = None) -> Size:
    """Draw a supported size; it can have one device, one microbatch, or fewer microbatches than devices."""
    name = draw(st.sampled_from(sorted(REGISTRY))) if name is None else name
    family = REGISTRY[name]
    devices = 2 * draw(st.integers(1, MOST_DEVICES // 2)) if family.bidirectional else draw(st.integers(1, MOST_DEVICES))
    chunks = family.fewest_chunks + family.chunk_step * draw(st.integers(0, 2 if family.chunk_step else 0))
    most = max(1, MOST_OPS // (3 * devices * chunks))
    if family.whole_groups:
        microbatches = devices * draw(st.integers(1, max(1, min(3, most // devices))))
    else:
        least = family.min_microbatches_per_device * devices // family.copies  # each copy gets an equal share of the microbatches
        microbatches = family.copies * draw(st.integers(max(1, least), max(12 // family.copies, least + 2)))
    return Size(name, devices, microbatches, chunks)


# Multiples of a quarter have exact sums in binary, so times can be compared bit for bit.
quarters = st.integers(0, 200).map(lambda number: number / 4)
eighths = st.integers(0, 8).map(lambda number: number / 8)
decimals = st.floats(0, 1000, allow_subnormal=False).map(lambda number: round(number, 6))
shares = st.floats(0, 1, allow_subnormal=False).map(lambda number: round(number, 6))


@st.composite
def settings_of(draw: st.DrawFn, devices: int, exact: bool = False) -> Setting:
    """Draw costs that are the same on all devices or differ between them; a cost can be zero."""
    time, share = (quarters, eighths) if exact else (decimals, shares)
    if draw(st.booleans()):
        forward, backward, part = draw(time), draw(time), draw(share)
        return uniform(devices, forward, backward, part, draw(time), draw(share), draw(links(devices, time)))
    row = st.lists(time, min_size=devices, max_size=devices).map(tuple)
    parts = st.lists(share, min_size=devices, max_size=devices).map(tuple)
    return Setting(draw(row), draw(row), draw(parts), draw(time), draw(share), draw(links(devices, time)))


@st.composite
def links(draw: st.DrawFn, devices: int, time: st.SearchStrategy[float]) -> tuple[tuple[float, ...], ...] | None:
    """Draw the latency from each device to each other device, from a few different values; None means that all are the same."""
    if draw(st.booleans()):
        return None
    few = draw(st.lists(time, min_size=1, max_size=4))
    rng = draw(st.randoms(use_true_random=False))
    return tuple(tuple(0.0 if sender == receiver else rng.choice(few) for receiver in range(devices)) for sender in range(devices))


@st.composite
def legal_orders(draw: st.DrawFn) -> Schedule:
    """Draw another order of a schedule's operations that can run: the next operation can be any whose inputs are done."""
    schedule = draw(sizes()).build()
    return _shuffled([list(order) for order in nodes(schedule)], schedule.stages, draw(st.randoms(use_true_random=False)))


@st.composite
def crossing_orders(draw: st.DrawFn) -> Schedule:
    """Draw an order that can run and whose microbatches take several paths: each copy's stages are shifted by some devices."""
    devices, chunks = draw(st.integers(2, 4)), draw(st.integers(1, 2))
    shifts = draw(st.lists(st.integers(0, devices - 1), min_size=2, max_size=3, unique=True))
    shift_of = draw(st.permutations(shifts + draw(st.lists(st.sampled_from(shifts), max_size=2))))
    kinds, seats = draw(st.sampled_from(["FB", "FIW"])), draw(st.permutations(range(devices)))
    left: list[list[Node]] = [[] for _ in range(devices)]
    for microbatch, shift in enumerate(shift_of):
        for stage in range(devices * chunks):
            left[seats[(stage + shift) % devices]] += [(kind, stage, microbatch) for kind in kinds]
    return _shuffled(left, devices * chunks, draw(st.randoms(use_true_random=False)))


def _shuffled(left: list[list[Node]], stages: int, rng: Any) -> Schedule:
    """Draw an order in which the next operation of a device can be any whose inputs are done."""
    every = {node for order in left for node in order}
    done: set[Node] = set()
    orders: list[list[str]] = [[] for _ in left]
    while any(left):
        ready = [(device, node) for device, order in enumerate(left) for node in order if done.issuperset(inputs(node, stages, every))]
        device, node = rng.choice(ready)
        left[device].remove(node)
        done.add(node)
        orders[device].append(f"{node[1]}{node[0]}{node[2]}")
    return Schedule("shuffled", orders)


@st.composite
def any_orders(draw: st.DrawFn) -> list[list[Node]]:
    """Draw an order of a small schedule's operations, which in most cases cannot run.

    On each device, the operations are in random order, or two neighbours are exchanged.
    """
    devices, microbatches = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    name = draw(st.sampled_from(["1f1b", "zb-h1"]))
    rng = draw(st.randoms(use_true_random=False))
    orders = nodes(build(name, devices, microbatches))
    if draw(st.booleans()):
        for order in orders:
            rng.shuffle(order)
    else:
        for _ in range(draw(st.integers(1, 3))):
            order = rng.choice(orders)
            place = rng.randrange(len(order) - 1)
            order[place], order[place + 1] = order[place + 1], order[place]
    return orders


@st.composite
def batches(draw: st.DrawFn, devices: int) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Draw the shape of a batch and the arguments of ``Costs``; an argument can lack some axes or have length 1 in them."""
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def cut(axes: tuple[int, ...]) -> tuple[int, ...]:
        kept = axes[draw(st.integers(0, len(axes))) :]
        return tuple(length if draw(st.booleans()) else 1 for length in kept)

    def values(axes: tuple[int, ...]) -> Any:
        return rng.integers(0, 40, axes) / 8 if axes else float(rng.integers(0, 40)) / 8

    # The forward time has every axis of the batch in full length, so that the shape of the batch is known.
    forward = values((*shape, draw(st.sampled_from([1, devices]))))
    backward, share = (values((*cut(shape), draw(st.sampled_from([1, devices])))) for _ in range(2))
    return shape, {"forward": forward, "backward": backward, "weight_share": share / 5, "p2p": np.expand_dims(values(cut(shape)), -1)}


def one_by_one(shape: tuple[int, ...], devices: int, arguments: dict[str, Any]) -> Iterator[tuple[tuple[int, ...], Costs]]:
    """Return the costs of every setting of a batch, made separately."""
    whole = {name: np.broadcast_to(value, (*shape, devices)) for name, value in arguments.items() if name != "p2p"}
    latency = np.broadcast_to(arguments["p2p"], (*shape, 1))[..., 0]
    for setting in np.ndindex(shape):
        rows = {name: value[setting].tolist() for name, value in whole.items()}
        yield setting, Costs(**rows, p2p=float(latency[setting]))
