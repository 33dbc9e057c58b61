"""Training runs that others measured on clusters: model, plan, GPU, the seconds of an iteration, and memory where it was measured.

``measured_runs.json`` has a table for each group, with its source, its licence, what was measured and what had to be assumed. A column has
the name of an argument of :class:`~hybridlab.Plan`, or is one of the following.

==================  ===========================================================================================
``model``           a name in the list of models of the file; ``layers`` and ``sequence`` change the model
``gpu``             a name of :func:`hybridlab.hardware.gpu`; ``network`` changes its share of the network, bytes/s
``modern``          whether the other settings are those of ``Plan.modern``
``part``            what was measured if it is not a whole iteration: ``forward`` or ``backward`` of one layer, or a schedule
``seconds``         or instead ``tokens`` or ``samples`` a second and GPU, or ``tflops``: TFLOP/s of a GPU
``causal``          whether these TFLOP/s count causal attention half
``gib``             measured memory of the fullest GPU in GiB, or instead ``gb``
``others``          seconds that another tool predicts, and ``others_gib``
``remark``          what distinguishes the row from others of the same model
==================  ===========================================================================================
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hybridlab.automatic import schedule_for
from hybridlab.checks import known_name
from hybridlab.costs import Costs
from hybridlab.hardware import Profile, gpu
from hybridlab.model import Experts, Latent, Transformer
from hybridlab.planner import EFFICIENCY, Plan, layer_seconds, memory, predict
from hybridlab.planner.layer import MEMORY_SHARE, head_pass
from hybridlab.simulation import simulate

FILE = Path(__file__).with_name("measured_runs.json")
HELD = {"ZB-1p": 1, "ZB-2p": 2}  # activations that a device may hold, in numbers of stages
PLAN_FIELDS = {field.name for field in fields(Plan)}


@dataclass(frozen=True)
class MeasuredRun:
    """One measured run.

    Parameters
    ----------
    name, group : str
        What ran, and the group of runs that it belongs to.
    model : Transformer
    plan : Plan
    profile : Profile
        The GPUs.
    seconds : float
        The measured seconds.
    nbytes : float, optional
        The measured memory of the fullest GPU.
    others, others_nbytes : float, optional
        The seconds and the bytes that another tool predicts for the run.
    part : str
        What took the seconds: "iteration", the "forward" or the "backward" of one layer, or the name of a schedule.
    """

    name: str
    group: str
    model: Transformer
    plan: Plan
    profile: Profile
    seconds: float
    nbytes: float | None = None
    others: float | None = None
    others_nbytes: float | None = None
    part: str = "iteration"

    @property
    def predicted(self) -> float:
        """The seconds that the planner predicts."""
        if self.part in ("forward", "backward"):
            return layer_seconds(self.model, self.plan, self.profile)[self.part == "backward"]
        if self.part in HELD:
            return _on_the_clock(self)
        return predict(self.model, self.plan, self.profile, must_fit=False).seconds

    @property
    def error(self) -> float:
        """Predicted / measured seconds - 1."""
        return self.predicted / self.seconds - 1

    @property
    def memory_error(self) -> float | None:
        """Predicted / measured memory - 1, or None if the memory was not measured."""
        return None if self.nbytes is None else memory(self.model, self.plan).total / self.nbytes - 1


@cache  # a test and the page ask for the same few runs several times, and a search takes a second
def _on_the_clock(run: MeasuredRun) -> float:
    """Return the seconds of an iteration whose schedule is the best that a search finds for the predicted times.

    A step ends on each device with its own last operation: the optimiser waits for no other device (Qi et al., arXiv 2401.10241, sec. 4).
    """
    model, plan, profile = run.model, run.plan, run.profile
    time = predict(model, plan, profile, must_fit=False)
    forward, backward = layer_seconds(model, plan, profile)
    share = profile.efficiency or EFFICIENCY
    head = head_pass(model, plan, profile, share)
    # the product of a weight gradient has the sizes of that of the forward, with the matrices of 12 h x h numbers in four products
    tokens, h = plan.microbatch * model.sequence, model.hidden
    rates = share * profile.matmul_flops, MEMORY_SHARE * profile.memory_bandwidth
    weights = 24.0 * tokens * h * h / rates[0] + 2 * (16 * tokens * h + 12 * h * h) / rates[1]
    of_head = head.matmul / 3 + 2 * (tokens * (h + model.vocabulary) + h * model.vocabulary) / rates[1]
    layers, last = np.array(plan.stage_layers), np.arange(plan.pipeline) == plan.pipeline - 1
    costs = Costs(
        forward=layers * forward + last * of_head,
        backward=layers * backward + last * (head.seconds - of_head),
        weight_share=(layers * weights + last * of_head) / (layers * backward + last * (head.seconds - of_head)),
        p2p=time.point_to_point / plan.microbatches / 2,
        unit="s",
    )
    found = schedule_for(costs, plan.microbatches, HELD[run.part] * plan.pipeline, devices=plan.pipeline, seconds=0)
    return float(simulate(found, costs).device_span) + time.optimiser


@cache
def _stored() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return read


def groups() -> tuple[str, ...]:
    """Return the names of the groups of runs."""
    return tuple(_stored()["groups"])


def told(group: str) -> Mapping[str, Any]:
    """Return what is told about a group: its ``source``, ``licence``, what was ``measured``, and what was ``assumed``.

    Raises
    ------
    HybridLabError
        There is no such group.

    Examples
    --------
    >>> told("H100, BF16")["measured"]
    'training step time, seconds, H100-80GB SXM, NeMo 24.09/24.11, last of 50 steps'
    """
    return _stored()["groups"][known_name(group, groups(), "group of runs")]  # type: ignore[no-any-return]


def rows(group: str) -> Iterator[dict[str, Any]]:
    """Yield each row of a group as a dictionary. Values that all rows share are in it; values that are missing are not."""
    table = told(group)
    for row in table["rows"]:
        values = {**table["every_row"], **dict(zip(table["columns"], row, strict=True))}
        yield {name: value for name, value in values.items() if value is not None}


def runs(group: str) -> tuple[MeasuredRun, ...]:
    """Return the measured runs of a group.

    Raises
    ------
    HybridLabError
        There is no such group.

    Examples
    --------
    >>> [run.name for run in runs("H100, Llama 3.1 405B")]
    ['Llama 3.1 405B, 512 GPUs, BF16', 'Llama 3.1 405B, 512 GPUs, FP8']
    """
    return tuple(run_of(group, row) for row in rows(group))


def run_of(group: str, row: Mapping[str, Any], models: Mapping[str, Mapping[str, Any]] | None = None) -> MeasuredRun:
    """Return the run of a row with the columns above. Its model is one of ``models``, by default those of the file."""
    sizes = dict((models or _stored()["models"])[row["model"]])
    parts = {"experts": Experts, "latent": Latent}
    model = Transformer(**{name: parts[name](**value) if name in parts else value for name, value in sizes.items()})
    model = replace(model, **{name: row[name] for name in ("layers", "sequence") if name in row})
    settings: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in row.items() if name in PLAN_FIELDS
    }
    plan = (Plan.modern if row.get("modern") else Plan)(**settings)
    name = row.get("name") or ", ".join(filter(None, (row["model"], f"{plan.gpus:,} GPUs", row.get("remark"))))
    gib = row.get("others_gib")
    return MeasuredRun(
        name,
        group,
        model,
        plan,
        replace(gpu(row["gpu"]), network=row["network"]) if "network" in row else gpu(row["gpu"]),
        _seconds(model, plan, row),
        row["gib"] * 2.0**30 if "gib" in row else row["gb"] * 1e9 if "gb" in row else None,
        row.get("others"),
        gib and gib * 2.0**30,
        row.get("part", "iteration"),
    )


def _seconds(model: Transformer, plan: Plan, row: Mapping[str, Any]) -> float:
    """Return the measured seconds of a row, or those that follow from a rate."""
    if "seconds" in row:
        return float(row["seconds"])
    if "tflops" in row:
        return model.flops(plan.global_batch, causal=row["causal"]) / plan.gpus / float(row["tflops"]) / 1e12
    tokens = plan.global_batch * model.sequence if "tokens" in row else plan.global_batch
    return tokens / plan.gpus / float(row.get("tokens") or row["samples"])
