"""Recorded errors of the library's predictions, compared with measurements that are not part of this repository.

If the measurements are in a folder beside the repository, `tests/outside/test_comparisons_recorded.py` computes all errors again and
prints them.

References
----------
Bang et al., vTrain, arXiv 2312.12391; MIT licence: 109 iteration times of GPT models on 64 to 512 A100s, 720 of small models in one node,
and times of all-reduces among 2 to 8 A100s.

Hagemann et al., arXiv 2311.05610: steps of a model with the shape of Llama 13B on 32 to 128 A100s, and runs that had not enough memory.

llm-foundry, scripts/train/benchmarking at commit 8c8dd48f: throughputs of MPT models under FSDP on A100s and H100s.

The Ultra-Scale Playbook, Hugging Face 2025; Apache-2.0: throughput and memory of nanotron on 8 to 64 H100s, with its crashed runs.
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
    of_three : float
        The extra time of the fastest of the three plans that are predicted to be the fastest.
    average : float
        The extra time of a random choice: the mean of this share over all plans.
    pairs : float
        The share of all pairs of plans that the prediction ranks as the measurement does.
    """

    plans: int
    lost: float
    of_three: float
    average: float
    pairs: float


class Fits(NamedTuple):
    """How often the planner says rightly whether a plan fits in memory.

    Parameters
    ----------
    plans : int
        Number of plans that somebody tried.
    refused : int
        Number of plans that ran, but do not fit by the prediction.
    allowed : int
        Number of plans that did not run, but fit by the prediction.
    """

    plans: int
    refused: int
    allowed: int

    @property
    def wrong(self) -> float:
        """The share of wrong answers.

        >>> Fits(40, 1, 3).wrong
        0.1
        """
        return (self.refused + self.allowed) / self.plans


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
        "all": Recorded(109, 0.08511, 0.07326, 0.4665, -0.4665, 0.176),
        "tensor 1": Recorded(8, 0.03072, 0.02156, 0.09097, -0.02568, 0.09097),
        "tensor 2": Recorded(14, 0.1409, 0.09827, 0.3383, -0.3383, 0.1119),
        "tensor 4": Recorded(30, 0.09372, 0.09432, 0.2843, -0.2843, 0.1192),
        "tensor 8": Recorded(51, 0.07249, 0.05663, 0.4665, -0.4665, 0.123),
        "tensor 16": Recorded(6, 0.09181, 0.09549, 0.176, 0.004371, 0.176),
        "tensor 8, 256 GPUs and more": Recorded(45, 0.06008, 0.05663, 0.123, -0.05413, 0.123),
        "tensor 8, microbatch 64": Recorded(1, 0.4665, 0.4665, 0.4665, -0.4665, -0.4665),
        "tensor 2, 512 GPUs, 16 replicas and more": Recorded(6, 0.2377, 0.2532, 0.3383, -0.3383, -0.1004),
    }
)
# The mean error for each of ASSUMPTIONS, by name. For each assumption, the efficiency is calibrated again on Table 1.
IF_ASSUMED: Mapping[str, float] = MappingProxyType(
    {
        "as it is": 0.08512,
        "memory reaches 0.8 of its peak": 0.08307,
        "memory reaches all of its peak": 0.0877,
        "network reaches 0.8 of line rate": 0.08843,
        "network reaches all of line rate": 0.08318,
        "efficiency 5 % lower": 0.1,
        "efficiency 5 % higher": 0.07671,
        "no time for memory": 0.1366,
        "no time for the network": 0.09531,
    }
)
# The keys are the number of parameters and the number of GPUs.
CHOICES: Mapping[str, Choice] = MappingProxyType(
    {
        "GPT of 3.6 billion, 64 GPUs": Choice(26, 0.0, 0.0, 0.7516, 0.9415),
        "GPT of 18.4 billion, 256 GPUs": Choice(15, 0.04457, 0.04457, 0.2338, 0.8571),
        "GPT of 39.1 billion, 512 GPUs": Choice(47, 0.0, 0.0, 0.2767, 0.778),
        "GPT of 174.6 billion, 512 GPUs": Choice(21, 0.006424, 0.006424, 0.07432, 0.8571),
        "Llama of 1B, 8 GPUs": Choice(30, 0.0, 0.0, 0.5769, 0.7379),
        "Llama of 1B, 16 GPUs": Choice(59, 0.0, 0.0, 1.962, 0.7873),
        "Llama of 1B, 32 GPUs": Choice(68, 0.0, 0.0, 7.184, 0.7867),
        "Llama of 1B, 64 GPUs": Choice(95, 0.01475, 0.0, 20.73, 0.7832),
        "Llama of 8B, 8 GPUs": Choice(13, 0.05069, 0.05069, 0.3316, 0.6154),
        "Llama of 8B, 16 GPUs": Choice(36, 0.03625, 0.0, 1.629, 0.6683),
        "Llama of 8B, 32 GPUs": Choice(55, 0.05941, 0.0, 6.141, 0.7051),
        "Llama of 8B, 64 GPUs": Choice(72, 0.002447, 0.002447, 13.24, 0.7203),
        "Llama of 1B, 8 GPUs, stages as they were": Choice(30, 0.0, 0.0, 0.5769, 0.8782),
        "Llama of 1B, 16 GPUs, stages as they were": Choice(59, 0.0, 0.0, 1.962, 0.851),
        "Llama of 1B, 32 GPUs, stages as they were": Choice(68, 0.0, 0.0, 7.184, 0.8371),
        "Llama of 1B, 64 GPUs, stages as they were": Choice(95, 0.01475, 0.0, 20.73, 0.8054),
        "Llama of 8B, 8 GPUs, stages as they were": Choice(13, 1.726, 0.0, 0.3316, 0.7692),
        "Llama of 8B, 16 GPUs, stages as they were": Choice(36, 1.719, 0.0, 1.629, 0.7175),
        "Llama of 8B, 32 GPUs, stages as they were": Choice(55, 0.05941, 0.0, 6.141, 0.7327),
        "Llama of 8B, 64 GPUs, stages as they were": Choice(72, 0.002447, 0.0, 13.24, 0.7437),
    }
)
# The errors of the predictions for groups of runs outside of this repository: of times, then of memory.
OUTSIDE: Mapping[str, Recorded] = MappingProxyType(
    {
        "A100, one node, vTrain": Recorded(720, 0.06276, 0.03781, 0.3196, -0.3196, 0.1163),
        "A100, Llama 13B, RMS kernel": Recorded(51, 0.1045, 0.08504, 0.2743, -0.2743, 0.03547),
        "A100, Llama 13B, RMS kernel, tensor 8": Recorded(9, 0.2216, 0.2176, 0.2743, -0.2743, -0.1713),
        "A100, Llama 13B, other kernels": Recorded(114, 0.2483, 0.2372, 0.4613, -0.4613, -0.03627),
        "FSDP, llm-foundry, 7B and larger": Recorded(77, 0.1225, 0.07349, 0.5616, -0.5616, 0.1262),
        "H100, Llama 1B and 8B, nanotron, tensor and pipeline on 16 to 64 nodes": Recorded(395, 0.7863, 0.9012, 0.9954, -0.9954, 0.00564),
        "H100, Llama 1B and 8B, nanotron, tensor over nodes": Recorded(321, 0.788, 0.8508, 0.9936, -0.9936, -0.1136),
    }
)
MEMORY_OUTSIDE: Mapping[str, Recorded] = MappingProxyType(
    {
        "H100, Llama 1B and 8B, nanotron, 1 to 8 nodes": Recorded(428, 0.1666, 0.1403, 1.294, -0.7226, 1.294),
    }
)
FITS: Mapping[str, Fits] = MappingProxyType(
    {
        "A100, Llama 13B, Hagemann et al.": Fits(422, 0, 93),
        "H100, Llama 1B and 8B, nanotron, 1 to 8 nodes": Fits(891, 0, 141),
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
