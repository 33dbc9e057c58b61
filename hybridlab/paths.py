"""The paths of microbatches over the devices: one, or one for each copy of the weights."""

from collections.abc import Iterable
from typing import NamedTuple

from hybridlab.ops import Op


class Placed(NamedTuple):
    """An operation of orders that were given, and where it stands: its device, and its place in that device's order."""

    op: Op
    device: int
    position: int


class Paths(NamedTuple):
    """The device of every stage for each copy of the weights, and the copy that each microbatch runs through."""

    copies: list[dict[int, int]]
    copy_of: dict[int, int]

    def device(self, op: Op) -> int:
        """Return the device that ``op`` belongs on."""
        return self.copies[self.copy_of[op.microbatch]][op.stage]


def paths_of(placed: Iterable[Placed]) -> Paths:
    """Return the paths that microbatches take: several where each of them has all stages and equally many on every device.

    Otherwise one, so that what stands elsewhere is a fault.

    >>> down_and_up = [("0F0", 0), ("1F0", 1), ("0F1", 1), ("1F1", 0)]
    >>> paths_of(Placed(Op.parse(text), device, 0) for text, device in down_and_up)
    Paths(copies=[{0: 0, 1: 1}, {0: 1, 1: 0}], copy_of={0: 0, 1: 1})
    """
    one: dict[int, int] = {}
    own: dict[int, dict[int, int]] = {}
    for op, device, _ in placed:
        one[op.stage] = device
        own.setdefault(op.microbatch, {}).setdefault(op.stage, device)
    devices = set(one.values())
    whole = [dict(sorted(own[microbatch].items())) for microbatch in sorted(own) if len(own[microbatch]) == len(one)]
    copies = [path for place, path in enumerate(whole) if path not in whole[:place]]
    if len(copies) < 2 or not all(_balanced(path, devices) for path in copies):
        return Paths([one], dict.fromkeys(own, 0))
    fitting = {
        microbatch: next((copy for copy, path in enumerate(copies) if mine.items() <= path.items()), 0) for microbatch, mine in own.items()
    }
    return Paths(copies, fitting)


def _balanced(path: dict[int, int], devices: set[int]) -> bool:
    held = list(path.values())
    return len({held.count(device) for device in devices}) == 1
