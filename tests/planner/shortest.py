"""Find the shortest order by trying every order: for tiny sizes, in exact fractions, without the bounds of the library."""

from collections.abc import Sequence
from fractions import Fraction

from oracle import Node, Setting, inputs, nodes

from hybridlab import Schedule


def shortest(schedule: Schedule, setting: Setting, capacity: Sequence[Fraction], at_most: Fraction) -> Fraction:
    """The least makespan below ``at_most`` of any order with at most ``capacity`` activations on each device, else ``at_most``.

    An order grows operation by operation, by start time, and is given up as soon as a device cannot end in time.
    Operations must take time.
    """
    orders = nodes(schedule)
    every = {node: device for device, order in enumerate(orders) for node in order}
    device_of = {stage: device for (_, stage, _), device in every.items()}
    takes = {node: setting.takes(node, device, schedule.chunks) for node, device in every.items()}
    needs = {node: inputs(node, schedule.stages, every) for node in every}
    best = at_most
    ends: dict[Node, Fraction] = {}
    free = [Fraction(0)] * len(orders)
    held = [Fraction(0)] * len(orders)
    work = [sum((takes[node] for node in order), Fraction(0)) for order in orders]

    def grow(latest: Fraction) -> None:
        nonlocal best
        if len(ends) == len(every):
            best = min(best, max(ends.values()))
            return
        for node, device in every.items():
            if node in ends or any(needed not in ends for needed in needs[node]):
                continue
            kind, stage, _ = node
            hops = [ends[needed] + Fraction(setting.hop(device_of[needed[1]], device_of[stage])) for needed in needs[node]]
            start = max([free[device], *hops])
            before, change = free[device], Fraction({"F": 1, "I": 0, "B": -1, "W": -1}[kind], schedule.chunks)
            if start < latest or start + work[device] >= best or held[device] + change > capacity[device]:
                continue
            ends[node] = free[device] = start + takes[node]
            work[device] -= takes[node]
            held[device] += change
            grow(start)
            held[device] -= change
            work[device] += takes[node]
            free[device] = before
            del ends[node]

    grow(Fraction(0))
    return best
