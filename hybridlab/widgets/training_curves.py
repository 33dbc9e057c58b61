"""The training curves: loss and held-out accuracy of finished runs, one at a time beside the run of a single device."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import traitlets

from hybridlab.checks import checked_text, counted, each_of, known_name, short_repr, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.training import Trained, TrainedAlone
from hybridlab.widgets.grid import MOST_BYTES
from hybridlab.widgets.pipeline import Data, packed
from hybridlab.widgets.scripts import script_of
from hybridlab.widgets.view import Checked, View, style_of

LONGEST_NAME = 40  # characters of an axis or of a value on it
MOST_RUNS = 500


class TrainingCurves(View):
    """A picture of training runs: choose one, and read its loss and its held-out accuracy beside those of one device.

    ``choices`` names the controls in their order; ``runs`` has one :class:`Trained` for every combination of their values, under a
    tuple of texts such as ``("INT8", "at random")``. ``alone`` is the run that all are drawn beside. All have the same
    number of steps, and their accuracy taken after the same ones. The traits ``chosen`` (a text for each control) and ``step`` follow
    the controls and can be observed and set; ``data`` holds all the curves, so that the picture answers without a kernel.
    Raises :class:`HybridLabError` for runs that are missing or do not fit together.

    >>> from hybridlab import build
    >>> from hybridlab.training import train, train_alone
    >>> runs = {(str(rate),): train(build("1f1b", 2, 2), 2, steps=4, learning_rate=rate) for rate in (0.1, 0.3)}
    >>> TrainingCurves(("Learning rate",), runs, train_alone(steps=4))
    <TrainingCurves: 2 runs of 4 steps; 0.1>
    """

    SETTING = ("chosen", "step")
    _esm = script_of("training_curves.js")
    _css = style_of("training", sheets=("training_curves.css",))

    data = traitlets.Dict(read_only=True).tag(sync=True)
    chosen = Checked().tag(sync=True)
    step = Checked().tag(sync=True)

    def __init__(self, choices: Sequence[str], runs: Mapping[tuple[str, ...], Trained], alone: TrainedAlone) -> None:
        data = curves_data(choices, runs, alone)
        self.set_trait("data", data)
        super().__init__(chosen=[axis["values"][0] for axis in data["axes"]], step=data["steps"])

    def checked(self, name: str, value: Any) -> Any:
        """Return ``value`` if it is a step of the runs, from 1, or has one value for each of the choices; or refuse it."""
        if name == "step":
            return whole_number(value, name, at_most=self.data["steps"])
        axes = self.data["axes"]
        values = list(each_of(value, "chosen has one value for each of the choices"))
        if len(values) != len(axes):
            raise HybridLabError(f"chosen has {counted(len(axes), 'value')}, one for each of the choices, not {short_repr(value)}")
        return [known_name(each, axis["values"], axis["name"]) for each, axis in zip(values, axes, strict=True)]

    def __repr__(self) -> str:
        """Return the same text for the same runs and choice, whatever the machine, which can change a curve in its last digits."""
        size = f"{counted(len(self.data['runs']), 'run')} of {counted(self.data['steps'], 'step')}"
        return f"<TrainingCurves: {size}; {', '.join(self.chosen)}>"


def curves_data(choices: Any, runs: Any, alone: Any) -> Data:
    """Return what a view draws: the choices, the range of all losses in powers of ten, and the curves of every run.

    Losses and accuracies have four digits: enough to draw and to read, and the same on every machine.
    """
    names = [_name(name, "the name of a choice") for name in each_of(choices, "choices are a list of names, such as ['All-reduce']")]
    if not isinstance(runs, Mapping) or not 0 < len(runs) <= MOST_RUNS or not names:
        raise HybridLabError(
            f"runs are up to {MOST_RUNS} finished runs, each under a tuple with a text for each choice, not {short_repr(runs)}"
        )
    for key, run in runs.items():
        if not isinstance(key, tuple) or len(key) != len(names) or not isinstance(run, Trained):
            wanted = "a tuple with a text for each choice, and a run as train() returns it"
            raise HybridLabError(f"each of the runs is {wanted}, not {short_repr(key)}: {short_repr(run)}")
    if not isinstance(alone, TrainedAlone):
        raise HybridLabError(f"alone is a run as train_alone() returns it, not {short_repr(alone)}")
    values = [list(dict.fromkeys(_name(key[place], "a value to choose") for key in runs)) for place in range(len(names))]
    missing = next((key for key in product(*values) if key not in runs), None)
    if missing is not None:
        raise HybridLabError(f"there is no run for {missing}: each combination of the values needs one")
    for run in runs.values():
        if run.losses.size != alone.losses.size or run.checked.tolist() != alone.checked.tolist():
            raise HybridLabError("all runs, that of one device too, need the same steps and the same `every`")
    every = [alone.losses, *(run.losses for run in runs.values())]
    data: Data = {
        "axes": [{"name": name, "values": offered} for name, offered in zip(names, values, strict=True)],
        "steps": alone.losses.size,
        "checked": alone.checked.tolist(),
        "decades": [int(np.floor(np.log10(min(map(np.min, every))))), int(np.ceil(np.log10(max(map(np.max, every)))))],
        "alone": _curves(alone),
        "runs": {"|".join(key): _curves(runs[key]) | _rest(runs[key]) for key in product(*values)},
    }
    if len(packed(data)) > MOST_BYTES:
        raise HybridLabError(
            f"these curves are more than the {MOST_BYTES / 1e6:g} MB of data that a page can carry: give fewer runs or steps"
        )
    return data


def _curves(run: TrainedAlone) -> Data:
    return {
        "losses": [float(f"{loss:.4g}") for loss in run.losses.tolist()],
        "accuracies": [round(accuracy, 4) for accuracy in run.accuracies.tolist()],
    }


def _rest(run: Trained) -> Data:
    """Return the largest difference between two replicas until each check (two digits), and the bytes of a step."""
    most = np.maximum.accumulate(run.spread)[run.checked - 1]
    return {"spread": [float(f"{each:.2g}") for each in most.tolist()], "bytes": run.bytes_sent}


def _name(value: Any, what: str) -> str:
    text = checked_text(value, what)
    if not 0 < len(text) <= LONGEST_NAME or not text.isprintable() or "|" in text:
        raise HybridLabError(f"{what} has 1 to {LONGEST_NAME} characters that can be printed, none of them |, not {short_repr(text)}")
    return text
