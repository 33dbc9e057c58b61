"""Measured steps of a run over MPI, for pages and notebooks that cannot start processes."""

import json
from functools import cache
from pathlib import Path
from types import MappingProxyType

from hybridlab.checks import known_name
from hybridlab.schedule import Schedule
from hybridlab.timeline import Timeline

FILE = Path(__file__).with_name("stored_steps.json")


def stored_steps(stages: str) -> MappingProxyType[str, tuple[Timeline, ...]]:
    """Return measured steps of GPipe and 1F1B with 4 processes and 8 microbatches, by the names of the schedules.

    The processes sleep 20 ms for a forward and 40 ms for a backward. They ran on two cores, on which other programs ran, too. Each
    schedule ran 12 steps, and the fastest step is stored.

    Parameters
    ----------
    stages : {"equal", "slow"}
        With "slow", stage 2 is 1.5 times as slow as the others.

    Raises
    ------
    HybridLabError
        ``stages`` is neither "equal" nor "slow".

    Examples
    --------
    >>> {name: len(steps) for name, steps in stored_steps("slow").items()}
    {'gpipe': 1, '1f1b': 1}
    """
    return _read_steps(known_name(stages, ("equal", "slow"), "kind of stages"))


@cache  # several cells of a notebook read the same file
def _read_steps(stages: str) -> MappingProxyType[str, tuple[Timeline, ...]]:
    stored = json.loads(FILE.read_text(encoding="utf-8"))[stages]
    return MappingProxyType({name: (_stored_timeline(name, step),) for name, step in stored.items()})


def _stored_timeline(name: str, step: dict[str, list[float] | str]) -> Timeline:
    """Return the timeline of a stored step, which has its order as text and its starts and ends in ms."""
    return Timeline(Schedule.parse(str(step["order"]), name=name), step["start"], step["end"], unit="ms")  # type: ignore[arg-type]
