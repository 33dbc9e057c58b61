"""The schedules of the gallery: each registered schedule at the common size, or at the nearest size that it supports."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product

from docutils import nodes
from joblib import Memory
from kept import folder

from gallery.groups import GROUPS, Group, group_of
from gallery.words import counted
from hybridlab import REGISTRY, Costs, HybridLabError, Schedule, Timeline, build, simulate
from hybridlab.bound import OptimalityGap, optimality_gap
from hybridlab.schedules import Family

DEVICES, MICROBATCHES = 4, 8
TIMES = {"forward": 1.0, "backward": 2.0}
WEIGHT_GRADIENT = 1.0  # part of the time of the backward
COSTS = Costs(**TIMES, weight_share=WEIGHT_GRADIENT / TIMES["backward"], unit=None)
SOLVER = 8.0  # seconds for each schedule that does not reach its bound: four times what the slowest needs


@dataclass(frozen=True)
class Entry:
    """A registered schedule at the common size; if it refuses that size with ``refusal``, at the nearest size that it supports."""

    family: Family
    timeline: Timeline
    refusal: str | None

    @property
    def schedule(self) -> Schedule:
        return self.timeline.schedule

    @property
    def group(self) -> Group:
        return group_of(self.schedule)

    @property
    def gap(self) -> OptimalityGap:
        """Distance from the best order with the same operations and no more activations."""
        return _gap(self.schedule)

    @property
    def least(self) -> float:
        """Makespan of the best order if it is known, else the lower bound."""
        known = self.gap.optimum
        return self.gap.bound if known is None else known

    @property
    def more(self) -> float:
        """Excess of the makespan over ``least``, as a fraction of ``least``; 0 if the two differ only by rounding."""
        more = self.gap.ratio - 1
        return 0.0 if math.isclose(more, 0, abs_tol=1e-9) else more

    @property
    def anchor(self) -> str:
        return nodes.make_id(f"schedule-{self.family.name}")

    @property
    def size(self) -> str:
        return f"{counted(self.schedule.devices, 'device')}, {counted(self.schedule.microbatches, 'microbatch')}"


@cache
def _gap(schedule: Schedule) -> OptimalityGap:
    """Return the gap. The solver runs once; its answer is kept on disk until the sources change."""
    kept = Memory(folder(), verbose=0).cache(_solved, ignore=["schedule"])
    return kept(f"{schedule.name}: {schedule}", schedule)


def _solved(text: str, schedule: Schedule) -> OptimalityGap:
    """Return the gap; ``text`` is its key on disk."""
    return optimality_gap(schedule, COSTS, seconds=SOLVER)


def entries() -> list[Entry]:
    """Return the entries group by group; within a group they are in the order of the registry."""
    made = []
    for name, family in REGISTRY.items():
        devices, microbatches = nearest_size(family)
        timeline = simulate(build(name, devices, microbatches), COSTS)
        made.append(Entry(family, timeline, family.refusal(DEVICES, MICROBATCHES, family.fewest_chunks)))
    return sorted(made, key=lambda entry: GROUPS.index(entry.group))


def nearest_size(family: Family) -> tuple[int, int]:
    """Return the devices and microbatches nearest to the common size that a schedule supports with its fewest chunks."""

    def distance(size: tuple[int, int]) -> tuple[int, int, int]:
        devices, microbatches = size
        return abs(devices - DEVICES), abs(microbatches - MICROBATCHES), -microbatches

    sizes = product(range(1, 4 * DEVICES + 1), range(1, 4 * MICROBATCHES + 1))
    for devices, microbatches in sorted(sizes, key=distance):
        if family.refusal(devices, microbatches, family.fewest_chunks) is None:
            return devices, microbatches
    raise HybridLabError(f"the gallery finds no size near {DEVICES} devices and {MICROBATCHES} microbatches for {family.name}")


QUANTITIES: Mapping[str, Callable[[Entry], float]] = {
    "makespan": lambda entry: float(entry.timeline.makespan),
    "bubble ratio": lambda entry: float(entry.timeline.bubble_ratio),
    "peak": lambda entry: float(entry.timeline.peak_activations.max()),
    "messages": lambda entry: int(entry.schedule.messages.sum()),
}


def best(shown: list[Entry]) -> dict[str, list[Entry]]:
    """Return for each quantity the schedules with the lowest value at the common size."""
    same = [entry for entry in shown if entry.refusal is None]
    least = {name: min(map(quantity, same), default=math.nan) for name, quantity in QUANTITIES.items()}
    return {name: [entry for entry in same if math.isclose(quantity(entry), least[name])] for name, quantity in QUANTITIES.items()}
