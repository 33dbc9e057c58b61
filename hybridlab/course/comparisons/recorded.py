"""Recorded errors of the library's predictions, compared with measurements of the vTrain project.

The measurements are 109 iteration times of GPT models on 64 to 512 A100s, and times of all-reduces among 2 to 8 A100s. They are not part
of this repository. If they are in a folder beside the repository, `tests/outside/test_comparisons_recorded.py` computes all errors
again and prints them.

References
----------
Bang et al., vTrain, arXiv 2312.12391; MIT licence.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from hybridlab.course.comparisons.comparison import Comparison, percent
from hybridlab.planner import Plan

SOURCE = "Bang et al. 2023"


class Recorded(NamedTuple):
    """The errors of several predictions. Each error is predicted / measured - 1.

    Parameters
    ----------
    points : int
        Number of measured runs.
    mean, median, worst : float
        Mean, median and largest absolute value of the errors.
    shortest, longest : float
        The lowest and the highest error with their signs. An error of -0.2 means that the prediction is a fifth too short.
    """

    points: int
    mean: float
    median: float
    worst: float
    shortest: float
    longest: float

    @property
    def words(self) -> str:
        """The range of the errors in words.

        >>> Recorded(6, 0.17, 0.18, 0.23, -0.229, -0.0517).words
        'from 23 % to 5.2 % too short'
        """
        low, high = (percent(abs(end)) for end in (self.shortest, self.longest))  # the words "short" and "long" give the sign
        if self.shortest == self.longest:
            return f"{low} too {'short' if self.shortest < 0 else 'long'}"
        if self.longest < 0:  # all predictions are too short; the largest error stands first
            return f"from {low} to {high} too short"
        return f"from {low} too short to {high} too long" if self.shortest < 0 else f"from {low} to {high} too long"


class Choice(NamedTuple):
    """How good the planner's choice among measured plans is. All plans are for one model, one cluster and one batch.

    Parameters
    ----------
    plans : int
        Number of measured plans.
    lost : float
        The extra time of the plan that is predicted to be the fastest, as a share of the measured time of the fastest plan.
    average : float
        The extra time of a random choice: the mean of this share over all plans.
    pairs : float
        The share of all pairs of plans that the prediction ranks as the measurement does.
    """

    plans: int
    lost: float
    average: float
    pairs: float


# Groups of plans by the sizes that change the error most. A plan is in every group whose function returns True for it.
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
# The errors of the predictions for each group, rounded to four digits. The efficiency is calibrated on Table 1 of Narayanan et al. 2021.
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
# The mean error for each of ASSUMPTIONS, by name. For each assumption, the efficiency is calibrated again on Table 1.
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
# The keys are the number of parameters and the number of GPUs.
CHOICES: Mapping[str, Choice] = MappingProxyType(
    {
        "3.6 billion, 64 GPUs": Choice(26, 0.0, 0.7516, 0.9415),
        "18.4 billion, 256 GPUs": Choice(15, 0.04457, 0.2338, 0.8381),
        "39.1 billion, 512 GPUs": Choice(47, 0.0, 0.2767, 0.7771),
        "174.6 billion, 512 GPUs": Choice(21, 0.006424, 0.07432, 0.8619),
    }
)
# The errors of ``measured_time`` for 2 to 8 GPUs, at the message sizes to which its curves were fitted.
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
    """Return the recorded comparison of predictions with 109 measured iteration times."""
    errors = ITERATION_TIMES["all"]
    note = "not refitted; recorded"  # the efficiency is calibrated on Table 1, not on these runs
    return Comparison("iteration times, 64 to 512 GPUs", SOURCE, errors.points, errors.mean, errors.worst, mean_bound=0.10, note=note)


def measured_all_reduces() -> tuple[Comparison, ...]:
    """Return the recorded comparisons of measured all-reduce times with the curves fitted to them, one for each number of GPUs."""
    note = "fitted to them; recorded"
    return tuple(
        Comparison(f"all-reduces of {ranks} GPUs", SOURCE, errors.points, errors.mean, errors.worst, mean_bound=0.02, note=note)
        for ranks, errors in ALL_REDUCES.items()
    )
