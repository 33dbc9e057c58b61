"""Which plan is fastest: all plans of a model on so many GPUs, those that fit in memory, and the best of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy.typing as npt

from hybridlab.arrays import one_object
from hybridlab.checks import item_of, whole_number
from hybridlab.errors import UnsupportedSize
from hybridlab.hardware import Profile
from hybridlab.model import RECOMPUTE, Transformer
from hybridlab.planner.advice import other_gpus
from hybridlab.planner.iteration import EFFICIENCY, predict
from hybridlab.planner.memory import memory
from hybridlab.planner.plan import Plan, checked_model, checked_profile, divisors, samples_of, tensor_degrees


class Found(NamedTuple):
    """A plan that fits: its predicted time, operations a second, and bytes on the fullest GPU."""

    plan: Plan
    seconds: float
    tflops_per_gpu: float
    memory: float


@dataclass(frozen=True)
class Search:
    """The plans of one search that fit in memory, the fastest first; ``tried`` counts those that do not fit too.

    Its length is the number of plans that fit, and it is indexed and iterated like ``found``.

    >>> from hybridlab.hardware import A100_80GB
    >>> plans = search(Transformer(layers=24, hidden=2304, heads=24), 32, A100_80GB)
    >>> len(plans), plans[0] == plans.best, [plan.microbatch for plan, *_ in plans[:2]]
    (1467, True, [2, 1])
    """

    model: Transformer
    profile: Profile
    found: tuple[Found, ...]
    tried: int

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Found]:
        return iter(self.found)

    @overload
    def __getitem__(self, place: int) -> Found: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Found, ...]: ...
    def __getitem__(self, place: int | slice) -> Found | tuple[Found, ...]:
        return item_of(self.found, place, "the search", "plan")

    def __array__(self, dtype: Any = None, copy: Any = None) -> npt.NDArray[Any]:
        return one_object(self)

    @property
    def best(self) -> Found:
        """The fastest plan."""
        return self.found[0]

    @property
    def pareto(self) -> tuple[Found, ...]:
        """The plans that no other beats in both time and memory, the fastest first: each is slower and smaller than the one before."""
        chosen: list[Found] = []
        for each in self.found:
            if not chosen or each.memory < chosen[-1].memory:
                chosen.append(each)
        return tuple(chosen)

    def to_rows(self, most: int | None = None) -> list[dict[str, Any]]:
        """Return one plain row a plan, the fastest first: its fields, seconds, TFLOP/s a GPU and gigabytes."""
        chosen = self.found if most is None else self.found[: whole_number(most, "most")]
        return [
            {
                **vars(each.plan),
                "microbatches": each.plan.microbatches,
                "seconds": each.seconds,
                "tflops_per_gpu": each.tflops_per_gpu,
                "memory_gb": each.memory / 1e9,
            }
            for each in chosen
        ]

    def __repr__(self) -> str:
        return f"Search({len(self.found):,} of {self.tried:,} plans fit on {self.profile.name}: best {self.best.seconds:.1f} s)"


def search(model: Transformer, gpus: int, profile: Profile, global_batch: int | None = None, *, efficiency: float = EFFICIENCY) -> Search:
    """Return every plan of ``model`` on ``gpus`` that fits in the memory of ``profile``, the fastest first.

    Tried are all tensor degrees that divide a node, stages, replicas, microbatches that are powers of two, chunks, and recomputation
    with and without sequence parallelism, that deal out layers, heads and samples evenly. ``global_batch`` is in samples; None
    takes one for each GPU, and at least 512. Raises :class:`UnsupportedSize` where no plan divides, or none fits, with
    the least memory that a plan would need, and the nearest numbers of GPUs on which one does.

    >>> from hybridlab.hardware import A100_80GB
    >>> found = search(Transformer(layers=24, hidden=2304, heads=24), 32, A100_80GB)
    >>> found
    Search(1,467 of 1,845 plans fit on A100-SXM4-80GB: best 2.7 s)
    >>> found.best.plan.recompute, len(found.pareto)
    ('none', 24)
    """
    count = whole_number(gpus, "gpus")
    asked = None if global_batch is None else whole_number(global_batch, "global_batch")
    batch = samples_of(count, asked)
    checked_model(model)
    checked_profile(profile)
    found, tried, least = [], 0, float("inf")
    for plan in plans(model, count, profile, batch):
        tried += 1
        used = memory(model, plan).total
        least = min(least, used)
        if used <= profile.memory:
            time = predict(model, plan, profile, efficiency=efficiency, must_fit=False)
            found.append(Found(plan, time.seconds, time.tflops_per_gpu, used))
    if not tried:
        message = f"no plan deals {model.layers} layers, {model.heads} heads and {batch} samples out to {count} GPUs"
        message += f" in nodes of {profile.gpus_per_node} evenly"
        raise UnsupportedSize(f"{message}; try {other_gpus(model, count, profile, asked)}")
    if not found:
        message = f"none of {tried:,} plans on {count} GPUs fits in {profile.memory / 1e9:g} GB: the smallest needs {least / 1e9:.1f} GB"
        raise UnsupportedSize(f"{message}, {(least - profile.memory) / 1e9:.1f} GB more; try {other_gpus(model, count, profile, asked)}")
    found.sort(key=lambda each: (each.seconds, each.memory))
    return Search(model, profile, tuple(found), tried)


def plans(model: Transformer, gpus: int, profile: Profile, global_batch: int) -> Iterator[Plan]:
    """Yield the plans that :func:`search` tries."""
    for tensor in tensor_degrees(model, profile):
        for pipeline in divisors(model.layers):
            data, left = divmod(gpus, tensor * pipeline)
            if not left and data and not global_batch % data:
                yield from _inner(model, tensor, pipeline, data, global_batch)


def _inner(model: Transformer, tensor: int, pipeline: int, data: int, global_batch: int) -> Iterator[Plan]:
    samples, layers = global_batch // data, model.layers // pipeline
    sizes = [2**power for power in range(samples.bit_length()) if samples % 2**power == 0]
    for size in sizes:
        count = samples // size
        chunks = [1] if pipeline == 1 or count % pipeline else divisors(layers)
        for chunk in chunks:
            for recompute in RECOMPUTE:
                for split in (False, True) if tensor > 1 else (False,):
                    yield Plan(tensor, pipeline, data, size, global_batch, chunk, recompute, split)
