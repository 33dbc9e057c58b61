"""The search for the fastest plan of a model on given GPUs, and for numbers of GPUs on which a plan fits."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy.typing as npt

from hybridlab.arrays import one_object
from hybridlab.checks import LARGEST, item_of, whole_number
from hybridlab.errors import UnsupportedSize
from hybridlab.hardware import Profile
from hybridlab.model import RECOMPUTE, Transformer
from hybridlab.planner.iteration import predict
from hybridlab.planner.memory import MORE_MEMORY, can_fit, memory
from hybridlab.planner.plan import LEAST_BATCH, Plan, checked_model, checked_profile, divisors, samples_of, tensor_degrees
from hybridlab.tables import Tabular


class Found(NamedTuple):
    """A plan that fits in memory: its predicted seconds per iteration, its TFLOP/s per GPU, and the bytes on its fullest GPU."""

    plan: Plan
    seconds: float
    tflops_per_gpu: float
    memory: float


@dataclass(frozen=True)
class Search(Tabular, Sequence[Found]):
    """The result of :func:`search`: all plans that fit in memory, fastest first.

    ``len``, indexing and iteration work as on the tuple ``found``.

    Attributes
    ----------
    model : Transformer
        The model.
    profile : Profile
        The GPUs.
    found : tuple of Found
        The plans that fit, fastest first.
    tried : int
        Number of all plans that the search tried, including plans that do not fit.

    Examples
    --------
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
        """The Pareto front: plans for which no other plan is both faster and smaller in memory. The fastest plan comes first."""
        chosen: list[Found] = []
        for each in self.found:
            # a later plan is slower, so it belongs to the front only if it needs less memory
            if not chosen or each.memory < chosen[-1].memory:
                chosen.append(each)
        return tuple(chosen)

    def to_rows(self, most: int | None = None) -> list[dict[str, Any]]:
        """Return one dict for each plan, fastest first, with the fields of the plan, seconds, TFLOP/s per GPU and memory in GB.

        Parameters
        ----------
        most : int, optional
            The largest number of rows. The default is one row for every plan.

        Raises
        ------
        HybridLabError
            ``most`` is not a whole number of at least 1.
        """
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

    def _caption(self) -> str:
        return f"{len(self.found):,} of {self.tried:,} plans fit on {self.profile.name}"

    def __repr__(self) -> str:
        return f"Search({len(self.found):,} of {self.tried:,} plans fit on {self.profile.name}: best {self.best.seconds:.1f} s)"


def search(model: Transformer, gpus: int, profile: Profile, global_batch: int | None = None, *, efficiency: float | None = None) -> Search:
    """Return all plans that fit in the memory of a given number of GPUs, fastest first.

    The search tries all plans of the software of 2021 that divide layers, heads and samples evenly. It combines every tensor degree that
    divides the GPUs of a node, every number of stages, replicas and chunks, microbatches of 1, 2, 4, ... samples, and every kind of
    recomputation. It tries each combination with and without sequence parallelism.

    Parameters
    ----------
    model : Transformer
        The model.
    gpus : int
        Number of GPUs.
    profile : Profile
        The GPUs, their nodes and their network.
    global_batch : int, optional
        Samples in one step. The default is one sample for each GPU, but at least 512.
    efficiency : float
        As in :func:`predict`.

    Returns
    -------
    Search

    Raises
    ------
    UnsupportedSize
        No plan divides the model and the samples (``not-divisible``), or no plan fits in memory (``too-large``). The message names the
        nearest smaller and the nearest larger number of GPUs on which a plan exists and fits.

    Examples
    --------
    >>> from hybridlab.hardware import A100_80GB
    >>> found = search(Transformer(layers=24, hidden=2304, heads=24), 32, A100_80GB)
    >>> found
    Search(1,467 of 1,845 plans fit on A100-SXM4-80GB: best 2.7 s)
    >>> found.best.plan.recompute, len(found.pareto)
    ('none', 25)
    """
    count = whole_number(gpus, "gpus")
    asked = None if global_batch is None else whole_number(global_batch, "global_batch")
    batch = samples_of(count, asked)
    checked_model(model)
    checked_profile(profile)
    found, tried, least_memory = [], 0, float("inf")
    for plan in plans(model, count, profile, batch):
        tried += 1
        used = memory(model, plan).total
        least_memory = min(least_memory, used)
        if used <= profile.memory:
            # must_fit=False, because the line above has checked the memory
            time = predict(model, plan, profile, efficiency=efficiency, must_fit=False)
            found.append(Found(plan, time.seconds, time.tflops_per_gpu, used))
    if not tried:
        message = f"no plan divides {model.layers} layers, {model.heads} heads and {batch} samples evenly"
        message += f" among {count} GPUs in nodes of {profile.gpus_per_node}"
        raise UnsupportedSize(f"{message}; try {other_gpus(model, count, profile, asked)}", "not-divisible")
    if not found:
        need, over = least_memory / 1e9, (least_memory - profile.memory) / 1e9
        message = f"none of {tried:,} plans on {count} GPUs fits in {profile.memory / 1e9:g} GB: the smallest needs {need:.1f} GB"
        raise UnsupportedSize(f"{message}, {over:.1f} GB more; try {other_gpus(model, count, profile, asked)}", "too-large")
    found.sort(key=lambda each: (each.seconds, each.memory))  # plans with equal time are sorted by memory
    return Search(model, profile, tuple(found), tried)


def plans(model: Transformer, gpus: int, profile: Profile, global_batch: int) -> Iterator[Plan]:
    """Yield the plans that :func:`search` tries."""
    for tensor in tensor_degrees(model, profile):
        for pipeline in divisors(model.layers):
            data, remainder = divmod(gpus, tensor * pipeline)
            if not remainder and data and not global_batch % data:
                yield from _plans_of_degrees(model, tensor, pipeline, data, global_batch)


def _plans_of_degrees(model: Transformer, tensor: int, pipeline: int, data: int, global_batch: int) -> Iterator[Plan]:
    """Yield the plans with these tensor, pipeline and data degrees."""
    samples, layers = global_batch // data, model.layers // pipeline
    # powers of two only, because a search of all sizes would take much longer
    sizes = [2**power for power in range(samples.bit_length()) if samples % 2**power == 0]
    for size in sizes:
        count = samples // size
        chunks = [1] if pipeline == 1 or count % pipeline else divisors(layers)
        for chunk in chunks:
            for recompute in RECOMPUTE:
                for split in (False, True) if tensor > 1 else (False,):
                    yield Plan(tensor, pipeline, data, size, global_batch, chunk, recompute, split)


def other_gpus(model: Transformer, gpus: int, profile: Profile, global_batch: int | None) -> str:
    """Return advice for a model that has no plan on ``gpus`` GPUs: the nearest smaller and larger numbers of GPUs on which a plan fits.

    If no number of GPUs is enough, the advice is to take GPUs with more memory. For given tensor and pipeline degrees, a plan needs
    the least memory with microbatches of one sample. More replicas never need more memory on a GPU, because each replica has fewer
    samples. So one test decides whether a smaller number of GPUs is enough, and a bisection finds the nearest larger number.

    >>> from hybridlab.hardware import H100
    >>> llama = Transformer(layers=126, hidden=16384, heads=128, vocabulary=128256, sequence=8192)
    >>> other_gpus(llama, 16384, H100, 2048)
    '16128 or 18432 GPUs'
    """
    nearest_below, nearest_above = 0, LARGEST + 1
    for tensor in tensor_degrees(model, profile):
        for pipeline in divisors(model.layers):
            replica_gpus = tensor * pipeline

            # the default values bind the degrees of this iteration of the loop
            def fits(data: int, tensor: int = tensor, pipeline: int = pipeline) -> bool:
                batch = samples_of(tensor * pipeline * data, global_batch)
                return can_fit(model, Plan(tensor, pipeline, data, 1, batch, recompute="none", sequence_parallel=True), profile)

            counts = _replica_counts(replica_gpus, gpus, global_batch)
            below = [data for data in counts if nearest_below < replica_gpus * data < gpus]
            above = [data for data in counts if gpus < replica_gpus * data < nearest_above]
            if below and fits(below[-1]):
                nearest_below = replica_gpus * below[-1]
            first = bisect_left(above, True, key=fits)  # bisection works because ``fits`` is False up to some number and True above
            if first < len(above):
                nearest_above = replica_gpus * above[first]
    found = [str(count) for count in (nearest_below, nearest_above) if 0 < count <= LARGEST]
    return f"{' or '.join(found)} GPUs" if found else MORE_MEMORY


def _replica_counts(replica_gpus: int, gpus: int, global_batch: int | None) -> list[int]:
    """Return numbers of replicas that divide the samples evenly, in increasing order. A replica has ``replica_gpus`` GPUs.

    If ``global_batch`` is None, a batch on 512 or more GPUs has one sample for each GPU. Every number of replicas divides such a batch
    evenly. The function returns only three of these numbers: the smallest number, and the two numbers nearest to ``gpus``.
    """
    if global_batch is not None:
        return divisors(global_batch)
    small = [data for data in divisors(LEAST_BATCH) if replica_gpus * data < LEAST_BATCH]
    least = -(-LEAST_BATCH // replica_gpus)  # rounded up; with at least this many replicas, a batch has one sample for each GPU
    return small + sorted({data for data in (least, (gpus - 1) // replica_gpus, gpus // replica_gpus + 1) if data >= least})
