"""Lab 9's build with each twist, as a student writes it from the clause."""

from collections.abc import Callable
from typing import Any

Given = dict[str, Any]


def ring(ranks: int, nbytes: float, rate: float) -> float:
    return 2 * (ranks - 1) / ranks * nbytes / rate


def times(
    model: Given,
    plan: Given,
    rates: Given,
    *,
    replicas: int = 0,
    microbatches: int = 0,
    batch: float = 0,
    layers: int = 0,
    speed: float = 1,
    bits: float = 1,
    gradient: int = 2,
) -> dict[str, float]:
    """Return the parts of an iteration, with keywords for what a clause changes."""
    h, s, t, stages, b = model["hidden"], model["sequence"], plan["tensor"], plan["stages"], plan["microbatch"]
    replicas = replicas or plan["replicas"]
    layers = layers or model["layers"] // stages
    count = microbatches or (batch or plan["batch"]) / (replicas * b)
    flops, network = speed * rates["flops"], rates["network"] / bits
    products = [3 * h, 2 * s, h, 8 * h]  # columns of the products with rows of h: QKV, scores and context, output, MLP
    layer = 4 * sum(2 * b * s * h * columns for columns in products) / t / flops
    logits = 3 * 2 * b * s * h * model["vocabulary"] / t / flops
    sent = 2 * b * s * h
    inside = ring(t, sent, rates["nvlink"])
    exchange = 2 * sent / t / network if stages > 1 else 0
    parameters = (layers * h * (12 * h + 13) + model["vocabulary"] * h) / t + s * h
    found = {
        "compute": count * (layers * layer + logits),
        "tensor": count * (6 * layers + 1) * inside,
        "messages": count * exchange,
        "bubble": (stages - 1) * (layers * (layer + 6 * inside) + exchange),
        "gradients": ring(replicas, gradient * parameters, network),
    }
    found["total"] = sum(found.values())
    return found


def as_shares(parts: dict[str, float]) -> dict[str, float]:
    return {name: value if name == "total" else value / parts["total"] for name, value in parts.items()}


def replicas_of(plan: Given) -> int:
    return int(plan["gpus"] // (plan["tensor"] * plan["stages"]))


def gpus(model: Given, plan: Given, rates: Given) -> Any:
    return times(model, plan, rates, replicas=replicas_of(plan))


def gpus_and_fp32(model: Given, plan: Given, rates: Given) -> Any:
    return times(model, plan, rates, replicas=replicas_of(plan), gradient=4)


def bits_and_shares(model: Given, plan: Given, rates: Given) -> Any:
    return as_shares(times(model, plan, rates, bits=8))


def bits(model: Given, plan: Given, rates: Given) -> Any:
    return times(model, plan, rates, bits=8)


def tokens(model: Given, plan: Given, rates: Given) -> Any:
    return times(model, plan, rates, batch=plan["batch"] / model["sequence"])


def fp32_and_layers(model: Given, plan: Given, rates: Given) -> Any:
    return times(model, plan, rates, layers=model["layers"], gradient=4)


def layers_of_a_stage(model: Given, plan: Given, rates: Given) -> Any:
    return times(model, plan, rates, layers=model["layers"])


def microbatches(model: Given, plan: Given, rates: Given) -> Any:
    return times(model, plan, rates, microbatches=plan["microbatches"])


def peak_and_shares(model: Given, plan: Given, rates: Given) -> Any:
    return as_shares(times(model, plan, rates, speed=0.5))


SOLUTIONS: dict[tuple[str, str], Callable[..., Any]] = {
    ("lab09.t5", "gpus"): gpus,
    ("lab09.t5", "bits-and-shares"): bits_and_shares,
    ("lab09.t5", "tokens"): tokens,
    ("lab09.t5", "fp32-and-layers-of-a-stage"): fp32_and_layers,
    ("lab09.t5", "microbatches"): microbatches,
    ("lab09.t5", "peak-and-shares"): peak_and_shares,
    ("lab09.t5", "layers-of-a-stage"): layers_of_a_stage,
    ("lab09.t5", "gpus-and-fp32"): gpus_and_fp32,
    ("lab09.t5", "bits"): bits,
}
