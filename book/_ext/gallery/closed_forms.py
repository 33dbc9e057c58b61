"""Numbers of a schedule by the clock and, where the library has one, by the closed form."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from gallery.entries import COSTS, TIMES, WEIGHT_GRADIENT, Entry
from gallery.words import each_device
from hybridlab import HybridLabError, UnsupportedSize, formulas

OF_SEVERAL = {  # closed forms that are not named after the rule
    "gpipe_bubble_ratio": "bubble_ratio",
    "one_f_one_b_bubble_ratio": "bubble_ratio",
    "eager_one_f_one_b_bubble_ratio": "bubble_ratio",
    "dualpipe_v_bubble": "dualpipe_bubble",
}
CLOCK: Mapping[str, Callable[[Entry], Any]] = {
    "makespan": lambda entry: f"{entry.timeline.makespan:g}",
    "bubble_ratio": lambda entry: f"{entry.timeline.bubble_ratio:.3f}",
    "span": lambda entry: f"{entry.timeline.device_span:g}",
    "bubble": lambda entry: each_device(entry.timeline.makespan - entry.timeline.busy),
}


def beside(entry: Entry, quantity: str) -> str:
    """Return a quantity of :data:`CLOCK` by the clock and, where there is a closed form, by the closed form.

    A closed form is named after the schedule's rule: `zb_h1_makespan` for `zb_h1`.
    """
    said = CLOCK[quantity](entry)
    name = formula_of(entry, quantity)
    if name is None:
        return said
    formula = getattr(formulas, name)
    schedule = entry.schedule
    known = TIMES | {"devices": schedule.devices, "microbatches": schedule.microbatches, "chunks": schedule.chunks}
    known |= {"weight_gradient": WEIGHT_GRADIENT, "p2p": 0.0}
    if quantity == "bubble":  # in the times of one stage
        pair = float(COSTS.pairs(schedule.devices, schedule.chunks)[0])
        backward, weight_gradient = (value / schedule.chunks for value in (TIMES["backward"], WEIGHT_GRADIENT))
        known |= {"stages": schedule.stages, "overlapped": pair, "backward": backward, "weight_gradient": weight_gradient}
    try:
        value = formula(**{argument: known[argument] for argument in inspect.signature(formula).parameters if argument in known})
    except UnsupportedSize:
        return said
    value = f"{value:.3f}" if quantity == "bubble_ratio" else f"{value:g}"
    return f"{said} by the clock, {value} by the closed form {{func}}`~hybridlab.formulas.{name}`"


def formula_of(entry: Entry, quantity: str) -> str | None:
    """Return the name of the closed form of a quantity, or None."""
    named = f"{getattr(entry.family.rule, '__name__', '')}_{quantity}"
    name = OF_SEVERAL.get(named, named)
    return name if hasattr(formulas, name) else None


def peak(entry: Entry) -> str:
    """Return the peak activations by the clock and, where there is a closed form, the largest peak of any device by it."""
    schedule = entry.schedule
    said = f"{each_device(entry.timeline.peak_activations)}, in microbatches"
    known = []
    for device in range(schedule.devices):
        try:
            known.append(formulas.peak_activations(schedule.name, schedule.devices, schedule.microbatches, device, schedule.chunks))
        except HybridLabError:  # no closed form for this schedule, this size or this device
            continue
    if not known:
        return said
    return f"{said}; at most {max(known):g} by the closed form {{func}}`~hybridlab.formulas.peak_activations`"
