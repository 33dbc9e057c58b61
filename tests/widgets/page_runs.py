"""Random schedules with random costs, as Python and a page have them: cases for the tests that compare scripts with the library."""

from functools import cache
from random import Random
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profiles import seeds
from strategies import crossing_orders, legal_orders, settings_of, sizes

from hybridlab import REGISTRY, Costs, Schedule
from hybridlab.schedule.text import turn_text

Run = tuple[Schedule, Costs]


def case_of(schedule: Schedule, costs: Costs) -> dict[str, Any]:
    """Return a schedule and its costs as a page has them."""
    between = costs.p2p_between
    each = {name: np.broadcast_to(getattr(costs, name), schedule.devices).tolist() for name in ("forward", "backward", "weight_share")}
    return {
        "orders": [" ".join(map(turn_text, order)) for order in schedule.turns],
        "costs": {**each, "p2p": costs.p2p.item(), "overlap": costs.overlap.item(), "links": None if between is None else between.tolist()},
    }


@cache
def random_runs() -> list[Run]:
    """Return every schedule of the registry in random sizes, other legal orders, and orders with crossing paths, with random costs.

    They are in random order, and the same in every run of a profile: about 2,000 in the full one, and an eighth of them in the quick one.
    """
    runs = [run for name in REGISTRY for run in drawn(sizes(name).map(lambda size: size.build()), 70)]
    runs += [*drawn(legal_orders(), 300), *drawn(crossing_orders(), 500)]
    Random(7).shuffle(runs)  # noqa: S311  # the same in every run
    return runs


def drawn(schedules: st.SearchStrategy[Schedule], count: int) -> list[Run]:
    """Draw schedules with costs: ``count`` in the full profile."""
    runs: list[Run] = []

    @settings(max_examples=len(seeds(count)), deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        schedule = data.draw(schedules)
        runs.append((schedule, data.draw(settings_of(schedule.devices)).costs()))

    draw()
    return runs
