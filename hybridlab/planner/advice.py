"""Which numbers of GPUs hold a model, where the number asked for does not."""

from bisect import bisect_left

from hybridlab.checks import LARGEST
from hybridlab.hardware import Profile
from hybridlab.model import Transformer
from hybridlab.planner.memory import MORE_MEMORY, can_fit
from hybridlab.planner.plan import LEAST_BATCH, Plan, divisors, samples_of, tensor_degrees


def other_gpus(model: Transformer, gpus: int, profile: Profile, global_batch: int | None) -> str:
    """Return what to try where no plan fits on ``gpus``: the nearest numbers of GPUs below and above on which one does.

    Where none does, that is GPUs of more memory. A plan of ``tensor`` x ``pipeline`` needs the least memory with microbatches of one
    sample, and no more of it with more replicas, each of which has fewer samples: one look tells whether fewer GPUs will do,
    and a bisection how many more.

    >>> from hybridlab.hardware import H100
    >>> llama = Transformer(layers=126, hidden=16384, heads=128, vocabulary=128256, sequence=8192)
    >>> other_gpus(llama, 16384, H100, 2048)
    '16128 or 18432 GPUs'
    """
    most, fewest = 0, LARGEST + 1
    for tensor in tensor_degrees(model, profile):
        for pipeline in divisors(model.layers):
            part = tensor * pipeline

            def fits(data: int, tensor: int = tensor, pipeline: int = pipeline) -> bool:
                batch = samples_of(tensor * pipeline * data, global_batch)
                return can_fit(model, Plan(tensor, pipeline, data, 1, batch, recompute="none", sequence_parallel=True), profile)

            counts = _replicas(part, gpus, global_batch)
            below = [data for data in counts if most < part * data < gpus]
            above = [data for data in counts if gpus < part * data < fewest]
            if below and fits(below[-1]):
                most = part * below[-1]
            first = bisect_left(above, True, key=fits)
            if first < len(above):
                fewest = part * above[first]
    found = [*[str(most)] * (most > 0), *[str(fewest)] * (fewest <= LARGEST)]
    return f"{' or '.join(found)} GPUs" if found else MORE_MEMORY


def _replicas(part: int, gpus: int, global_batch: int | None) -> list[int]:
    """Return numbers of replicas of so many GPUs that share the samples evenly, the least first.

    Where the batch grows with the GPUs, every number does, and only the nearest to ``gpus`` are of use.
    """
    if global_batch is not None:
        return divisors(global_batch)
    small = [data for data in divisors(LEAST_BATCH) if part * data < LEAST_BATCH]
    least = -(-LEAST_BATCH // part)
    return small + sorted({data for data in (least, (gpus - 1) // part, gpus // part + 1) if data >= least})
