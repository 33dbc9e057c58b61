"""Lab 9's build with each twist, written from its sentence: a function that does the task in the text becomes one with the twist."""

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
Given = dict[str, Any]


def from_gpus(plan: Given) -> Given:
    return {**plan, "replicas": plan["gpus"] // plan["tensor"] // plan["stages"]}


def from_microbatches(plan: Given) -> Given:
    return {**plan, "batch": plan["microbatches"] * plan["replicas"] * plan["microbatch"]}


def in_fp32(parts: Given) -> Given:
    return {**parts, "gradients": 2 * parts["gradients"], "total": parts["total"] + parts["gradients"]}


def as_shares(parts: Given) -> Given:
    return {name: part / parts["total"] for name, part in parts.items()} | {"total": parts["total"]}


TWISTED: dict[str, dict[str, Callable[[Function], Function]]] = {
    "lab09.t5": {
        "gpus": lambda times: lambda model, plan, rates: times(model, from_gpus(plan), rates),
        "microbatches": lambda times: lambda model, plan, rates: times(model, from_microbatches(plan), rates),
        "tokens": lambda times: lambda model, plan, rates: times(model, {**plan, "batch": plan["batch"] / model["sequence"]}, rates),
        "bits": lambda times: lambda model, plan, rates: times(model, plan, {**rates, "network": rates["network"] / 8}),
        "peak": lambda times: lambda model, plan, rates: times(model, plan, {**rates, "flops": rates["flops"] / 2}),
        "layers-of-a-stage": lambda times: (
            lambda model, plan, rates: times({**model, "layers": model["layers"] * plan["stages"]}, plan, rates)
        ),
        "fp32": lambda times: lambda *given: in_fp32(times(*given)),
        "shares": lambda times: lambda *given: as_shares(times(*given)),
    }
}
