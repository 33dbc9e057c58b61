"""The view of training curves: loss and held-out accuracy of finished training runs, compared with a run on one device."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import traitlets

from hybridlab.checks import checked_text, counted, each_of, known_name, short_repr, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.training import Trained, TrainedAlone
from hybridlab.widgets.page_data import Data, compact_json, refuse_too_large
from hybridlab.widgets.scripts import FromFiles, script_of, style_sheet
from hybridlab.widgets.view import Checked, View

LONGEST_NAME = 40  # largest number of characters in the name of a control or in a value
MOST_RUNS = 500


class TrainingCurves(View):
    """A view of the loss and the held-out accuracy in a chosen training run, compared with a run on one device.

    All curves are in the trait ``data``, so the view works without a running kernel. The traits ``chosen`` (one text for each control) and
    ``step`` change with the controls. Python can observe and set them.

    Parameters
    ----------
    choices : sequence of str
        The names of the controls, in their order.
    runs : mapping of tuple of str to Trained
        One run for every combination of the controls' values. A key has one value for each control, for example ``("INT8", "at random")``.
    alone : TrainedAlone
        The run on one device. All runs need the same number of steps, and the accuracy must be measured after the same steps.

    Raises
    ------
    HybridLabError
        A run is missing, the runs do not fit together, or the data have more than 2 MB.

    Examples
    --------
    >>> from hybridlab import build
    >>> from hybridlab.training import train, train_alone
    >>> runs = {(str(rate),): train(build("1f1b", 2, 2), 2, steps=4, learning_rate=rate) for rate in (0.1, 0.3)}
    >>> TrainingCurves(("Learning rate",), runs, train_alone(steps=4))
    <TrainingCurves: 2 runs of 4 steps; 0.1>
    """

    SETTING = ("chosen", "step")
    _esm = FromFiles(script_of, "training_curves.js")
    _css = FromFiles(style_sheet, "training", files=("training_curves.css",))

    data = traitlets.Dict(read_only=True).tag(sync=True)
    chosen = Checked().tag(sync=True)
    step = Checked().tag(sync=True)

    def __init__(self, choices: Sequence[str], runs: Mapping[tuple[str, ...], Trained], alone: TrainedAlone) -> None:
        data = curves_data(choices, runs, alone)
        self.set_trait("data", data)
        super().__init__(chosen=[axis["values"][0] for axis in data["axes"]], step=data["steps"])

    def checked(self, name: str, value: Any) -> Any:
        """Return a step (from 1) or a list with one value for each control. Raise an error for anything else."""
        if name == "step":
            return whole_number(value, name, at_most=self.data["steps"])
        axes = self.data["axes"]
        values = list(each_of(value, "chosen must have one value for each of the choices"))
        if len(values) != len(axes):
            wanted = f"{counted(len(axes), 'value')}, one for each of the choices"
            raise HybridLabError(f"chosen must have {wanted}, not {short_repr(value)}", "wrong-length")
        return [known_name(each, axis["values"], axis["name"]) for each, axis in zip(values, axes, strict=True)]

    def still(self) -> Any:
        """Return the losses against the step as a figure."""
        from hybridlab.plot import lines

        run = self.data["runs"]["|".join(self.chosen)]
        curves = {"the chosen run": run, "one device": self.data["alone"]}
        ends = ", ".join(f"{name} {100 * curve['accuracies'][-1]:.1f} %" for name, curve in curves.items())
        title = f"{', '.join(self.chosen)}. Held-out accuracy at the end: {ends}"
        # A marker for each of many steps would hide the lines, so the figure has about 20 steps, the last one among them.
        steps = list(range(self.data["steps"], 0, -max(1, self.data["steps"] // 20)))[::-1]
        losses = {name: [curve["losses"][step - 1] for step in steps] for name, curve in curves.items()}
        return lines(steps, losses, x_label="step", y_label="loss of each global batch", title=title, log_y=True)

    def __repr__(self) -> str:
        """Return the number of runs and the choice."""
        # No values of curves, because stored notebooks contain this text, and last digits of curves differ between machines.
        size = f"{counted(len(self.data['runs']), 'run')} of {counted(self.data['steps'], 'step')}"
        return f"<TrainingCurves: {size}; {', '.join(self.chosen)}>"


def curves_data(choices: Any, runs: Any, alone: Any) -> Data:
    """Return the data of the view: the choices, the range of all losses in powers of ten, and all curves.

    Parameters
    ----------
    choices, runs, alone
        As for :class:`TrainingCurves`.

    Returns
    -------
    dict
        ``axes`` has a name and values for each control. ``alone`` and each entry of ``runs`` have ``losses`` and ``accuracies``. Losses and
        accuracies have four digits, because these digits are the same on every machine.

    Raises
    ------
    HybridLabError
        A run is missing, the runs do not fit together, or the data have more than 2 MB.
    """
    listed = each_of(choices, "choices must be a list of names, such as ['All-reduce']")
    names = [_short_text(name, "the name of a choice") for name in listed]
    if not isinstance(runs, Mapping) or not 0 < len(runs) <= MOST_RUNS or not names:
        wanted = f"up to {MOST_RUNS} finished runs, each under a tuple with a text for each choice"
        raise HybridLabError(f"runs must be {wanted}, not {short_repr(runs)}", "wrong-type")
    for key, run in runs.items():
        if not isinstance(key, tuple) or len(key) != len(names) or not isinstance(run, Trained):
            wanted = "a tuple with a text for each choice, and a run as train() returns it"
            raise HybridLabError(f"each of the runs must be {wanted}, not {short_repr(key)}: {short_repr(run)}", "wrong-type")
    if not isinstance(alone, TrainedAlone):
        raise HybridLabError(f"alone must be a run as train_alone() returns it, not {short_repr(alone)}", "wrong-type")
    # The values of a control have the order of the runs.
    values = [list(dict.fromkeys(_short_text(key[place], "a value to choose") for key in runs)) for place in range(len(names))]
    # The controls are independent of each other, so a reader can choose every combination.
    missing = next((key for key in product(*values) if key not in runs), None)
    if missing is not None:
        raise HybridLabError(f"there is no run for {missing}: each combination of the values needs one", "missing-run")
    for run in runs.values():
        if run.losses.size != alone.losses.size or run.checked.tolist() != alone.checked.tolist():
            raise HybridLabError("all runs, and the run of one device, need the same number of steps and the same `every`", "does-not-fit")
    losses = [alone.losses, *(run.losses for run in runs.values())]
    data: Data = {
        "axes": [{"name": name, "values": offered} for name, offered in zip(names, values, strict=True)],
        "steps": alone.losses.size,
        "checked": alone.checked.tolist(),
        # All runs share one scale, so that the axis does not change with the choice of a run.
        "decades": [int(np.floor(np.log10(min(map(np.min, losses))))), int(np.ceil(np.log10(max(map(np.max, losses)))))],
        "alone": _curve_entries(alone),
        "runs": {"|".join(key): _curve_entries(runs[key]) | _spread_and_bytes(runs[key]) for key in product(*values)},
    }
    refuse_too_large(len(compact_json(data)), "these curves are", "give fewer runs or steps")
    return data


def _curve_entries(run: TrainedAlone) -> Data:
    """Return the losses and accuracies of a run with four digits."""
    return {
        "losses": [float(f"{loss:.4g}") for loss in run.losses.tolist()],
        "accuracies": [round(accuracy, 4) for accuracy in run.accuracies.tolist()],
    }


def _spread_and_bytes(run: Trained) -> Data:
    """Return the bytes sent in a step, and the largest difference between replicas until each check of the accuracy (two digits)."""
    largest = np.maximum.accumulate(run.spread)[run.checked - 1]  # steps are counted from 1
    return {"spread": [float(f"{each:.2g}") for each in largest.tolist()], "bytes": run.bytes_sent}


def _short_text(value: Any, subject: str) -> str:
    """Return a text of 1 to 40 printable characters without "|", or raise an error."""
    # "|" separates the texts in the keys of the data.
    text = checked_text(value, subject)
    if not 0 < len(text) <= LONGEST_NAME or not text.isprintable() or "|" in text:
        wanted = f"1 to {LONGEST_NAME} printable characters without |"
        raise HybridLabError(f"{subject} must have {wanted}, not {short_repr(text)}", "malformed-name")
    return text
