"""Recorded trials: steps that processes ran with MPI and with torch.distributed, and predictions of these steps from measured times.

Measured steps need a quiet machine, so they are stored in `trials.json`, together with the load of the machine.
`tests/engines/record_trials.py` repeats the measurement and stores its results.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from hybridlab.checks import each_of, short_repr
from hybridlab.costs import Costs
from hybridlab.course.comparisons.comparison import Comparison
from hybridlab.engines import Trial
from hybridlab.errors import HybridLabError

STORED = Path(__file__).with_name("trials.json")
DEVICES, MICROBATCHES = 4, 8
EQUAL, ONE_SLOW = "equal stages", "one slow stage"
# For each trial: its schedules, which run alternately, and its costs in ms. An operation computes, then sleeps for the rest of its cost.
TRIALS: Mapping[str, tuple[tuple[str, ...], Costs]] = MappingProxyType(
    {
        EQUAL: (("gpipe", "1f1b", "interleaved", "zb-h1"), Costs(forward=20, backward=40)),
        ONE_SLOW: (("gpipe", "1f1b"), Costs(forward=[20, 20, 30, 20], backward=[40, 40, 60, 40])),
    }
)
NAMES: Mapping[str, str] = MappingProxyType({"mpi": "MPI", "torch": "torch.distributed"})
# The largest errors that are accepted for each engine: of a replayed step, and of a step predicted with times from another schedule.
BOUNDS: Mapping[str, tuple[float, float]] = MappingProxyType({"mpi": (0.03, 0.04), "torch": (0.05, 0.08)})
MOST_STOLEN = 0.02  # the share of time that other virtual machines may take from a quiet machine


@cache
def recorded_trials() -> Mapping[str, Mapping[str, Trial]]:
    """Return the stored trials by the name of the engine ("mpi" or "torch"), then by the name of the trial in ``TRIALS``.

    Examples
    --------
    >>> sorted(recorded_trials()), [row.schedule for row in recorded_trials()["mpi"]["one slow stage"].rows]
    (['mpi', 'torch'], ['gpipe', '1f1b'])
    """
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    return MappingProxyType(
        {engine: MappingProxyType({name: Trial.from_dict(values) for name, values in trials.items()}) for engine, trials in stored.items()}
    )


def predicted_steps() -> tuple[Comparison, ...]:
    """Return two recorded comparisons for each engine.

    1. Replayed steps: a step is predicted with the times that were measured in the same schedule.
    2. Steps predicted with the times that were measured in another schedule.
    """
    found = []
    for engine, by_name in recorded_trials().items():
        trials = tuple(by_name.values())
        rows = [row for trial in trials for row in trial.rows]
        errors = {"replayed steps": [row.replay for row in rows], "steps by times of another schedule": [row.cross for row in rows]}
        for (what, signed), bound in zip(errors.items(), BOUNDS[engine], strict=True):
            sizes = [abs(error) for error in signed]
            found.append(
                Comparison(
                    f"{what}, {NAMES[engine]}",
                    f"{DEVICES} processes on one machine",
                    len(sizes),
                    sum(sizes) / len(sizes),
                    max(sizes),
                    worst_bound=bound,
                    note=f"{conditions(trials)}; recorded",
                )
            )
    return tuple(found)


def was_quiet(trial: Trial) -> bool:
    """Return whether the machine ran little other work during a trial.

    Raises
    ------
    HybridLabError
        ``trial`` is not a Trial.
    """
    _checked_trial(trial)
    # The load counts the processes of the trial, too, so it may be as high as the number of cores. Some systems report no load.
    return (trial.load or 0.0) <= trial.cores and (trial.steal or 0.0) <= MOST_STOLEN


def _checked_trial(trial: object) -> Trial:
    if not isinstance(trial, Trial):
        raise HybridLabError(f"a trial is what predict_and_measure returns, not {short_repr(trial)}", "wrong-type")
    return trial


def conditions(trials: Iterable[Trial]) -> str:
    """Return the state of the machine during trials in words: its cores, and the largest load and share of stolen time.

    Raises
    ------
    HybridLabError
        ``trials`` is empty, or not a list of trials.

    Examples
    --------
    >>> conditions(recorded_trials()["mpi"].values()).startswith("2 cores")
    True
    """
    known = [_checked_trial(trial) for trial in each_of(trials, "conditions takes trials, such as recorded_trials()['mpi'].values()")]
    if not known:
        raise HybridLabError("conditions takes at least one trial", "empty")
    loads = [trial.load for trial in known if trial.load is not None]
    steals = [trial.steal for trial in known if trial.steal is not None]
    words = [f"{known[0].cores} cores"]
    words += [f"load {max(loads):.1f}"] if loads else []
    words += [f"stolen {100 * max(steals):.1f} %"] if steals else []
    return ", ".join(words)
