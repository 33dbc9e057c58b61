"""Compare Hanayo's order with that of a second planner, which was written from the rule in words.

The library copies a group when it repeats the previous group. The planner here places every group, slot by slot.
"""

from itertools import product

from cases import in_turn

from hybridlab import build


def planned(devices: int, microbatches: int, chunks: int) -> list[list[str]]:
    """Return the order of every device, planned one operation at a time with sets of taken slots."""
    stages = chunks * devices
    device_of = [s % devices if (s // devices) % 2 == 0 else devices - 1 - s % devices for s in range(stages)]
    taken: list[set[int]] = [set() for _ in range(devices)]
    slots: dict[tuple[str, int, int], int] = {}
    begin = 0

    def lay(microbatch: int) -> None:
        now = begin
        path = [("F", s, 1) for s in range(stages)] + [("B", s, 2) for s in reversed(range(stages))]
        for kind, stage, width in path:
            row = taken[device_of[stage]]
            while any(now + more in row for more in range(width)):
                now += 1
            row.update(range(now, now + width))
            slots[kind, stage, microbatch] = now
            now += width

    for first in range(0, microbatches, devices):
        lay(first)
        for stage in range(devices, 2 * devices):
            device, turn = device_of[stage], slots["F", stage, first]
            taken[device].update(range(turn - (devices - 1 - device), turn))
        for stage in range(stages - devices, stages):
            device, turn = device_of[stage], slots["B", stage, first]
            taken[device].update(range(turn - device, turn))
        for microbatch in range(first + 1, first + devices):
            lay(microbatch)
        begin = slots["B", 0, first] + 2
    orders: list[list[str]] = [[] for _ in range(devices)]
    for kind, stage, microbatch in sorted(slots, key=lambda op: slots[op]):
        orders[device_of[stage]].append(f"{stage}{kind}{microbatch}")
    return orders


@in_turn("devices", range(1, 7))
@in_turn("groups, chunks", product((1, 2, 3, 5), (2, 4, 6)))
def test_every_group_lies_where_the_rule_puts_it(devices: int, groups: int, chunks: int) -> None:
    schedule = build("hanayo", devices, groups * devices, chunks)
    assert [[str(op) for op in order] for order in schedule.orders] == planned(devices, groups * devices, chunks)
