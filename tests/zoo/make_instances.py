"""The instances of the zoo. Run it to write hybridlab/zoo/instances: python tests/zoo/make_instances.py"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hybridlab.course.puzzles import PUZZLES
from hybridlab.zoo import FOLDER

HERE = Path(__file__).parent
TABLE_9 = json.loads((HERE.parent / "data" / "zero_bubble.json").read_text(encoding="utf-8"))
ZERO_BUBBLE = "Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, table 9"
MODELS = {"1.5B": "1500m", "6.2B": "6200m"}
Fields = dict[str, Any]


def fields_of(group: str, name: str, sizes: tuple[int, int], memory: Any, **other: Any) -> Fields:
    """Return the fields of an instance whose stages take 10 us for each kind of operation, or what ``other`` says."""
    devices, microbatches = sizes
    values = {"source": "made", "chunks": 1, "placement": "loop", "split": True, "latency": 0, "unit": "us"} | other
    kinds = ["forward", "input_gradient", "weight_gradient"] if values["split"] else ["forward", "backward"]
    usual = {"forward": 10, "input_gradient": 10, "weight_gradient": 10, "backward": 20}
    stages = devices * values["chunks"]
    own = {kind: values.get(kind, usual[kind]) for kind in kinds}
    times = {kind: time if isinstance(time, list) else [time] * stages for kind, time in own.items()}
    head = {"format": 1, "name": name, "class": group, "source": values["source"], "devices": devices, "microbatches": microbatches}
    return head | {key: values[key] for key in ("chunks", "placement", "split")} | {"memory": memory} | {
        key: values[key] for key in ("latency", "unit")
    } | times  # fmt: skip


def sized(group: str, sizes: tuple[int, int], memory: int | None, *words: str, **other: Any) -> Fields:
    """Return the fields of an instance that is named after its class, its sizes and its memory."""
    parts = [group, "x".join(map(str, sizes)), *words, *([] if memory is None else [f"m{memory}"])]
    return fields_of(group, "-".join(parts), sizes, memory, **other)


def even() -> Iterator[Fields]:
    """F = I = W on every device, with memory K, K/2, 2 or without limit."""
    memories = {
        (2, 4): (1, 2), (4, 8): (2, 4, None), (8, 16): (2, 4, 8, None), (8, 32): (2, 4, 8), (16, 32): (8, 16), (16, 64): (2, 8, 16, None),
    }  # fmt: skip
    for sizes, each in memories.items():
        for memory in each:
            yield sized("even", sizes, memory)


def latency() -> Iterator[Fields]:
    """Messages take 0.1 or 1 forward, or there is one slow link."""
    for (devices, microbatches), time, memory in (
        ((4, 8), 1, 4), ((4, 8), 10, 4), ((4, 16), 10, None), ((8, 16), 10, 16), ((8, 24), 1, 8), ((8, 24), 10, 8), ((16, 32), 1, 16),
        ((16, 32), 10, 16),
    ):  # fmt: skip
        yield sized("latency", (devices, microbatches), memory, f"c{time}", latency=time)
    for (devices, microbatches), link, memory in (((4, 8), 1, 4), ((8, 16), 3, 8), ((8, 24), 0, 8), ((16, 32), 7, 16)):
        matrix = [[0 if i == j else 20 if {i, j} == {link, link + 1} else 1 for j in range(devices)] for i in range(devices)]
        yield sized("latency", (devices, microbatches), memory, f"slow{link}", latency=matrix)


def whole() -> Iterator[Fields]:
    """Backwards that are not split."""
    for sizes, memory in (((2, 4), 2), ((4, 8), 2), ((4, 8), 4), ((8, 16), 4), ((8, 16), 8), ((8, 32), 8), ((16, 32), 16), ((16, 64), 16)):
        yield sized("whole", sizes, memory, split=False)
    yield sized("whole", (8, 24), 8, "c5", split=False, latency=5)
    yield sized("whole", (4, 12), 4, "end", split=False, forward=[10, 10, 10, 15], backward=[20, 20, 20, 30])


def uneven() -> Iterator[Fields]:
    """Heavy ends (an embedding and a head), one slow device, or a memory for each device, which falls from the first to the last."""
    for sizes, kind, memory in (
        ((4, 8), "ends", 2), ((4, 8), "slow", 4), ((4, 16), "slow", 4), ((8, 16), "ends", 8),
        ((8, 16), "slow", 8), ((8, 24), "ends", 4), ((8, 24), "slow", 4), ((8, 32), "ends", 4), ((8, 32), "slow", 6), ((16, 32), "ends", 8),
        ((16, 32), "slow", 8), ((12, 36), "ends", 6), ((16, 64), "slow", 8),
    ):  # fmt: skip
        yield sized("uneven", sizes, memory, kind, **_uneven_times(sizes[0], kind))
    for sizes, most in (((4, 8), 4), ((8, 16), 8), ((8, 24), 6), ((8, 32), 5), ((16, 64), 10)):
        devices = sizes[0]
        memory = [max(2, most - most * device // (2 * devices)) for device in range(devices)]
        name = f"uneven-{devices}x{sizes[1]}-each{most}"
        yield fields_of("uneven", name, sizes, memory, **_uneven_times(devices, "each"))


def _uneven_times(devices: int, kind: str) -> Fields:
    if kind == "ends":
        middle = devices - 2
        return {"forward": [14, *[10] * middle, 13], "input_gradient": [12, *[11] * middle, 14], "weight_gradient": [9, *[9] * middle, 12]}
    if kind == "slow":
        slow = devices // 2
        return {
            name: [slower if device == slow else time for device in range(devices)]
            for name, time, slower in (("forward", 10, 14), ("input_gradient", 11, 15), ("weight_gradient", 9, 12))
        }
    return {
        "forward": [10 + device * 3 % 5 for device in range(devices)],
        "input_gradient": [11 + device * 2 % 5 for device in range(devices)],
        "weight_gradient": [8 + device * 4 % 7 for device in range(devices)],
    }


def chunks() -> Iterator[Fields]:
    """Two chunks on each device."""
    for sizes, placement, memory in (
        ((4, 8), "loop", 2), ((4, 8), "v", 2), ((4, 8), "loop", 4), ((4, 8), "v", 4),
        ((6, 12), "any", 6), ((8, 16), "loop", 8), ((8, 16), "v", 8), ((8, 24), "any", 8),
        ((6, 12), "loop", 3), ((6, 12), "v", 3), ((6, 12), "any", 3), ((6, 18), "v", 3), ((8, 16), "loop", 4), ((8, 16), "v", 4),
        ((8, 24), "loop", 4), ((8, 24), "v", 4), ((8, 32), "v", 4), ((12, 36), "v", 6), ((16, 32), "loop", 8),
        ((16, 32), "v", 8),
    ):  # fmt: skip
        yield sized("chunks", sizes, memory, placement, chunks=2, placement=placement)


def published() -> Iterator[Fields]:
    """The times of Zero Bubble's table 9 with memory p, 1.5p and 2p; the example of labs 13 and 18, and the puzzles of the labs."""
    for model, devices, microbatches, *times in TABLE_9["table9_ms"]["rows"]:
        forward, input_gradient, weight_gradient, message = (round(1000 * time) for time in times)
        for memory in (devices, 3 * devices // 2, 2 * devices):
            yield fields_of(
                "published", f"zb-{MODELS[model]}-{devices}x{microbatches}-m{memory}", (devices, microbatches), memory, source=ZERO_BUBBLE,
                latency=message, forward=forward, input_gradient=input_gradient, weight_gradient=weight_gradient,
            )  # fmt: skip
    for memory in (8, 12):
        yield fields_of(
            "published", f"labs-8x24-m{memory}", (8, 24), memory, source="the example of lab 13", unit="ms", latency=5, input_gradient=8,
            weight_gradient=12,
        )  # fmt: skip
    for puzzle in PUZZLES.values():
        costs = puzzle.data()["costs"]
        weights = [round(backward * share) for backward, share in zip(costs["backward"], costs["weight_share"], strict=True)]
        whole = list(map(round, costs["backward"]))
        parts = {
            "input_gradient": [all_of_it - weight for all_of_it, weight in zip(whole, weights, strict=True)],
            "weight_gradient": weights,
            "backward": whole,
        }
        yield fields_of(
            "published", f"puzzle-{puzzle.name}", (puzzle.devices, puzzle.microbatches), puzzle.memory, source="a puzzle of labs 17 and 19",
            unit=puzzle.costs.unit, latency=round(costs["p2p"]), split=puzzle.split, forward=list(map(round, costs["forward"])), **parts,
        )  # fmt: skip


def instances() -> dict[str, str]:
    """Return the content of the file of each instance, by its name."""
    found = [each for group in (even, latency, whole, uneven, chunks, published) for each in group()]
    texts = {each["name"]: written(each) for each in found}
    assert len(texts) == len(found), "two instances have the same name"
    return texts


def written(fields: Fields) -> str:
    """Return fields as JSON with a line for each field."""
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items())
    return f"{{\n{lines}\n}}\n"


if __name__ == "__main__":
    folder = FOLDER / "instances"
    texts = instances()
    for old in folder.glob("*.json"):
        if old.stem not in texts:
            old.unlink()
    for name, text in texts.items():
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    print(f"{len(texts)} instances")
