"""Find the shortest order among all orders: for small sizes, in whole numbers, without the bounds of the library."""

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

from oracle import Node, Setting, inputs, nodes

from hybridlab import Schedule


def shortest(schedule: Schedule, setting: Setting, capacity: Sequence[Fraction], at_most: Fraction) -> Fraction:
    """The least makespan below ``at_most`` of any order with at most ``capacity`` activations on each device, else ``at_most``.

    An order grows operation by operation. After the same set of operations, only the times at which devices are free and inputs are there
    matter for the rest. A list of such times is dropped if another list is nowhere later, or if the rest cannot end before ``at_most``.
    """
    orders = nodes(schedule)
    device = {node: number for number, order in enumerate(orders) for node in order}
    every, room = list(device), [int(limit * schedule.chunks) for limit in capacity]
    needs = {node: [(needed, device[needed]) for needed in inputs(node, schedule.stages, device)] for node in every}
    exact = {node: setting.takes(node, device[node], schedule.chunks) for node in every}
    hops = {(node, needed): Fraction(setting.hop(of, device[node])) for node in every for needed, of in needs[node]}
    unit = lcm(at_most.denominator, *(time.denominator for time in (*exact.values(), *hops.values())))
    takes, hop = ({key: int(time * unit) for key, time in table.items()} for table in (exact, hops))
    after: dict[Node, int] = {}  # the time that an operation and all that need it take at least

    def chain(node: Node) -> int:
        if node not in after:
            following = [chain(other) + hop[other, node] for other in every if any(needed == node for needed, _ in needs[other])]
            after[node] = takes[node] + max(following, default=0)
        return after[node]

    best = int(at_most * unit)
    states: dict[frozenset[Node], list[tuple[int, ...]]] = {frozenset(): [(0,) * (len(orders) + len(every))]}
    for _ in every:
        grown: dict[frozenset[Node], list[tuple[int, ...]]] = {}
        for done, lists in states.items():
            left = [(place, node) for place, node in enumerate(every, start=len(orders)) if node not in done]
            held = [sum({"F": 1, "I": 0, "B": -1, "W": -1}[node[0]] for node in order if node in done) for order in orders]
            for place, node in left:
                here, (kind, _, _) = device[node], node
                if any(needed not in done for needed, _ in needs[node]) or (kind == "F" and held[here] == room[here]):
                    continue
                rest = [(other, each) for other, each in left if each != node]
                known = grown.setdefault(done | {node}, [])
                for times in lists:
                    later = list(times)
                    later[here] = later[place] = max(times[here], times[place]) + takes[node]
                    for other, each in rest:
                        if (each, node) in hop:
                            later[other] = max(later[other], later[place] + hop[each, node])
                        later[other] = max(later[other], later[device[each]])
                    work = [later[number] + sum(takes[each] for _, each in rest if device[each] == number) for number in range(len(orders))]
                    end = max(*work, *(later[other] + chain(each) for other, each in rest), 0)
                    later[place] = 0
                    if end >= best or any(all(map(int.__le__, other, later)) for other in known):
                        continue
                    best = best if rest else end
                    known[:] = [other for other in known if not all(map(int.__le__, later, other))] + [tuple(later)]
        states = grown
    return Fraction(best, unit)
