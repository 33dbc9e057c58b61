"""Errors measured on the tables of the vTrain project, which are not part of this repository: only the errors are written down.

Bang et al., vTrain, arXiv 2312.12391; MIT licence: 109 iteration times of GPT models on 64 to 512 A100s, and times of all-reduces
among 2 to 8 A100s. `tests/test_trust_recorded.py` computes all of it afresh where the tables stand beside the repository, and prints it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from hybridlab.course.comparisons.comparison import Comparison, percent
from hybridlab.planner import Plan

SOURCE = "Bang et al. 2023"


class Recorded(NamedTuple):
    """Errors of predictions on ``points`` measured runs, as shares: of their sizes ``mean``, ``median`` and ``worst``.

    ``shortest`` and ``longest`` are the ends with their sign: a prediction of -0.2 is a fifth shorter than what was measured.
    """

    points: int
    mean: float
    median: float
    worst: float
    shortest: float
    longest: float

    @property
    def words(self) -> str:
        """Between which errors the predictions lie.

        >>> Recorded(6, 0.17, 0.18, 0.23, -0.229, -0.0517).words
        'from 23 % to 5.2 % too short'
        """
        low, high = (percent(abs(end)) for end in (self.shortest, self.longest))
        if self.shortest == self.longest:
            return f"{low} too {'short' if self.shortest < 0 else 'long'}"
        if self.longest < 0:
            return f"from {low} to {high} too short"
        return f"from {low} too short to {high} too long" if self.shortest < 0 else f"from {low} to {high} too long"


class Choice(NamedTuple):
    """What choosing by prediction would have cost among ``plans`` measured for one model, cluster and batch.

    ``lost``: how much longer the plan that is predicted fastest took than the one that was. ``average``: how much longer a plan
    taken at random takes in the mean. ``pairs``: the share of pairs of plans that the predictions put in the measured order.
    """

    plans: int
    lost: float
    average: float
    pairs: float


GROUPS: Mapping[str, Callable[[Plan], bool]] = MappingProxyType(
    {
        "all": lambda plan: True,
        "tensor 1": lambda plan: plan.tensor == 1,
        "tensor 2": lambda plan: plan.tensor == 2,
        "tensor 4": lambda plan: plan.tensor == 4,
        "tensor 8": lambda plan: plan.tensor == 8,
        "tensor 16": lambda plan: plan.tensor == 16,
        "tensor 8, 256 GPUs and more": lambda plan: plan.tensor == 8 and plan.gpus >= 256,
        "tensor 8, microbatch 64": lambda plan: plan.tensor == 8 and plan.microbatch == 64,
        "tensor 2, 512 GPUs, 16 replicas and more": lambda plan: plan.tensor == 2 and plan.gpus == 512 and plan.data >= 16,
    }
)
# the constant of Table 1, nothing refitted; to four digits
ITERATION_TIMES: Mapping[str, Recorded] = MappingProxyType(
    {
        "all": Recorded(109, 0.08791, 0.07038, 0.4736, -0.4736, 0.1087),
        "tensor 1": Recorded(8, 0.03495, 0.03134, 0.07336, -0.04674, 0.07336),
        "tensor 2": Recorded(14, 0.1495, 0.1008, 0.3493, -0.3493, 0.09941),
        "tensor 4": Recorded(30, 0.09752, 0.0943, 0.2963, -0.2963, 0.1076),
        "tensor 8": Recorded(51, 0.06442, 0.04789, 0.4736, -0.4736, 0.1087),
        "tensor 16": Recorded(6, 0.1664, 0.1848, 0.229, -0.229, -0.05168),
        "tensor 8, 256 GPUs and more": Recorded(45, 0.05125, 0.04889, 0.1087, -0.09211, 0.1087),
        "tensor 8, microbatch 64": Recorded(1, 0.4736, 0.4736, 0.4736, -0.4736, -0.4736),
        "tensor 2, 512 GPUs, 16 replicas and more": Recorded(6, 0.2493, 0.2648, 0.3493, -0.3493, -0.112),
    }
)
# mean error, if an assumption were another and the constant refitted on Table 1: names of trust.ASSUMPTIONS
IF_ASSUMED: Mapping[str, float] = MappingProxyType(
    {
        "as it is": 0.08791,
        "memory reaches 0.8 of its peak": 0.08261,
        "memory reaches all of its peak": 0.09243,
        "network reaches 0.8 of line rate": 0.08548,
        "network reaches all of line rate": 0.08988,
        "efficiency 5 % lower": 0.09814,
        "efficiency 5 % higher": 0.0847,
        "no time for memory": 0.1493,
        "no time for the network": 0.09531,
    }
)
# by parameters and GPUs
CHOICES: Mapping[str, Choice] = MappingProxyType(
    {
        "3.6 billion, 64 GPUs": Choice(26, 0.0, 0.7516, 0.9415),
        "18.4 billion, 256 GPUs": Choice(15, 0.04457, 0.2338, 0.8381),
        "39.1 billion, 512 GPUs": Choice(47, 0.0, 0.2767, 0.7771),
        "174.6 billion, 512 GPUs": Choice(21, 0.006424, 0.07432, 0.8619),
    }
)
# measured_time of 2 to 8 GPUs, on the sizes that its pieces were fitted to
ALL_REDUCES: Mapping[int, Recorded] = MappingProxyType(
    {
        2: Recorded(20, 0.007917, 0.002525, 0.04054, -0.04054, 0.02628),
        3: Recorded(20, 0.00938, 0.004569, 0.03094, -0.03094, 0.02617),
        4: Recorded(20, 0.01347, 0.003301, 0.1088, -0.1088, 0.01704),
        5: Recorded(20, 0.01229, 0.004265, 0.05723, -0.05723, 0.05373),
        6: Recorded(20, 0.01485, 0.00572, 0.07653, -0.05436, 0.07653),
        7: Recorded(20, 0.01641, 0.01014, 0.05419, -0.0371, 0.05419),
        8: Recorded(20, 0.01696, 0.006158, 0.08065, -0.05232, 0.08065),
    }
)


def measured_iterations() -> Comparison:
    """Return how far the 109 measured iteration times are from predictions, as recorded."""
    message = ITERATION_TIMES["all"]
    note = "not refitted; recorded"
    what = "iteration times, 64 to 512 GPUs"
    return Comparison(what, SOURCE, message.points, message.mean, message.worst, mean_bound=0.10, note=note)


def measured_all_reduces() -> tuple[Comparison, ...]:
    """Return how far measured all-reduce times are from the pieces fitted to them, for each number of GPUs, as recorded."""
    return tuple(
        Comparison(
            f"all-reduces of {ranks} GPUs",
            SOURCE,
            message.points,
            message.mean,
            message.worst,
            mean_bound=0.02,
            note="fitted to them; recorded",
        )
        for ranks, message in ALL_REDUCES.items()
    )
