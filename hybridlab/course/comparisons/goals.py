"""The errors of the planner on all groups of measured runs, beside those of the version before and the goals set for this one."""

from typing import NamedTuple

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import true_or_false
from hybridlab.course.comparisons.comparison import Comparison, compared
from hybridlab.course.comparisons.measured_runs import MeasuredRun, runs, told
from hybridlab.course.comparisons.planning import MEGATRON, left_out
from hybridlab.course.comparisons.recorded import CHOICES, FITS, ITERATION_TIMES, OUTSIDE
from hybridlab.errors import HybridLabError
from hybridlab.planner import calibrate, predict

NOT_SAID = "not said"  # the version before had no word for these models or plans
TABLE_1, LEFT_OUT, THESE, BF16 = "Table 1", "the other models", "these rows", "rows of BF16"


class Target(NamedTuple):
    """What the errors on a group of measured runs should be at most.

    Parameters
    ----------
    group : str
        The runs.
    before : str
        Mean and worst error of the version before, in per cent.
    mean, worst : float, optional
        The goals, as shares. None is no goal.
    constant : str
        The runs that chose the GPU's efficiency.
    memory : bool
        Whether the errors are those of the memory and not those of the time.
    """

    group: str
    before: str
    mean: float | None
    worst: float | None
    constant: str
    memory: bool = False


class Reached(NamedTuple):
    """The errors on a group of measured runs beside the goal, which is the bound of the comparison."""

    target: Target
    comparison: Comparison

    @property
    def met(self) -> bool | None:
        """Whether the goal is met by the errors in per cent with two digits, as pages show them. None if there is no goal."""
        found = self.comparison
        pairs = ((found.mean_error, found.mean_bound), (found.worst_error, found.worst_bound))
        kept = [float(f"{100 * error:.2g}") <= round(100 * bound, 6) for error, bound in pairs if bound is not None]
        return all(kept) if kept else None


LEFT_OUT_GROUP, TEN_RUNS = "H100, BF16", "ten runs of Table 1, each left out"
CHOSEN, OF_THREE, WRONG = "loss by the plan predicted fastest", "loss by the best of three", "does a plan fit: wrong answers"
GOALS = (
    Target("A100, one layer of GPT 22B", "5.8 / 14", 0.02, 0.03, TABLE_1),
    Target(TEN_RUNS, "2.4 / 5.2", 0.024, 0.052, "the nine others"),
    Target("A100, 64 to 512 GPUs, vTrain", "8.5 / 47", 0.085, 0.47, TABLE_1),
    Target("A100, one node, vTrain", "44 / 85", 0.07, 0.32, TABLE_1),
    Target("A100, Llama 13B, RMS kernel", "15 to 23", 0.09, 0.25, TABLE_1),
    Target("A100, GPT 6.2B, 1F1B", "32 / 46", 0.03, 0.06, TABLE_1),
    Target("A100, GPT 1.5B, 1F1B, vocabulary 32,000", "32 / 46", 0.03, 0.06, TABLE_1),
    Target("A100, GPT 1.5B, 1F1B, vocabulary 51,200", "32 / 46", None, None, TABLE_1),
    Target("A100, GPT 6.2B, zero bubble", NOT_SAID, 0.04, 0.06, TABLE_1),
    Target(LEFT_OUT_GROUP, "10.5, most not said", 0.03, 0.08, LEFT_OUT),
    Target("H100, FP8, NeMo 24.07", NOT_SAID, 0.05, 0.12, BF16),
    Target("H100, FP8, 70B, six releases", NOT_SAID, 0.06, 0.09, BF16),
    Target("H100, FP8, 4K to 64K tokens", NOT_SAID, 0.03, 0.06, BF16),
    Target("H100, BF16, Grok-1", NOT_SAID, 0.12, 0.16, BF16),
    Target("H100, Llama 3.1 405B", NOT_SAID, None, None, BF16),
    Target("H100, FP8, MLPerf GPT-3", NOT_SAID, None, None, BF16),
    Target("H100, BF16, FSDP, MaxText 70B", NOT_SAID, 0.12, None, BF16),
    Target("FSDP, llm-foundry, 7B and larger", NOT_SAID, 0.12, None, "Table 1, rows of BF16"),
    Target("B200, BF16, 12 layers of 70B", "16 / 29", 0.06, 0.12, THESE),
    Target("B200, BF16, 12 layers of 70B", "74 / 142", 0.01, 0.02, "", memory=True),
    Target("B200, BF16, 12 layers of 70B, long samples", NOT_SAID, None, None, "rows of 4K"),
    Target("B200, BF16, 12 layers of 70B, long samples", NOT_SAID, None, None, "", memory=True),
    Target("B200, BF16, 4 layers of DeepSeek-V2", NOT_SAID, 0.10, 0.15, "rows of 70B"),
    Target("B200, BF16, 4 layers of DeepSeek-V2", NOT_SAID, 0.01, 0.02, "", memory=True),
    Target("GB200, FP8, 70B", NOT_SAID, 0.04, 0.08, THESE),
    Target("GB300, FP8, 70B", NOT_SAID, 0.07, 0.30, THESE),
    Target("GB200 and GB300, FP8, Qwen3 30B", NOT_SAID, 0.12, 0.17, "rows of 70B"),
    Target(CHOSEN, "23 / 173", 0.02, 0.06, ""),
    Target(OF_THREE, NOT_SAID, 0.01, None, ""),
    Target(WRONG, "33", 0.15, None, ""),
)

# Groups of runs that the planner has no word for
NOT_COVERED = ("H100, FP8, Qwen3 30B on two nodes", "GPT-OSS 120B", "GB200 and GB300, NVFP4, 70B")


def goals_reached() -> tuple[Reached, ...]:
    """Return the errors on every group of measured runs beside its goal. Those on runs outside of the repository are recorded."""
    return tuple(Reached(target, _comparison(target)) for target in GOALS)


def _comparison(target: Target) -> Comparison:
    found = _recorded().get(target.group)
    if found is not None:
        points, mean, worst = found
        return Comparison(target.group, "", points, mean, worst, target.mean, target.worst, "recorded")
    ten = target.group == TEN_RUNS
    errors = left_out() if ten else errors_of(target.group, memory=target.memory)
    return compared(
        target.group,
        MEGATRON if ten else str(told(target.group)["source"]),
        1 + errors,
        np.ones(errors.size),
        mean_bound=target.mean,
        worst_bound=target.worst,
        note="memory" if target.memory else "",
    )


def _recorded() -> dict[str, tuple[int, float, float]]:
    """Return the number of points, the mean and the worst error for each group of recorded errors."""
    groups = {**OUTSIDE, "A100, 64 to 512 GPUs, vTrain": ITERATION_TIMES["all"]}
    found = {name: (row.points, row.mean, row.worst) for name, row in groups.items()}
    among = [choice for name, choice in CHOICES.items() if name.startswith("Llama") and name.endswith("GPUs")]
    for name, losses in ((CHOSEN, [choice.lost for choice in among]), (OF_THREE, [choice.of_three for choice in among])):
        found[name] = (len(losses), float(np.mean(losses)), max(losses))
    fits = FITS["A100, Llama 13B, Hagemann et al."]
    return {**found, WRONG: (fits.plans, fits.wrong, fits.wrong)}


def errors_of(group: str, *, memory: bool = False) -> Floats:
    """Return predicted / measured - 1 for each run of a group. In the group "H100, BF16", each model is left out of the calibration.

    Parameters
    ----------
    group : str
        The name of a group of measured runs.
    memory : bool
        Whether to return the errors of the memory, which must have been measured, and not those of the time.

    Raises
    ------
    HybridLabError
        There is no such group, ``memory`` is not True or False, or the memory of the group was not measured.

    Examples
    --------
    >>> errors_of("B200, BF16, 12 layers of 70B", memory=True).round(3).tolist()[:3]
    [-0.008, -0.005, -0.006]
    """
    measured = runs(group)
    if true_or_false(memory, "memory"):
        if any(run.nbytes is None for run in measured):
            raise HybridLabError(f"the memory of the runs of {group} was not measured: leave out memory", "empty")
        return np.array([run.memory_error for run in measured])
    if group == LEFT_OUT_GROUP:
        return _each_model_left_out(measured)
    return np.array([run.error for run in measured])


def _each_model_left_out(measured: tuple[MeasuredRun, ...]) -> Floats:
    """Return the error of each run with the efficiency that is calibrated on the runs of other models."""
    shares = {}
    for model in {run.model for run in measured}:
        others = [(run.model, run.plan, run.seconds) for run in measured if run.model != model]
        shares[model] = calibrate(others, measured[0].profile)
    times = [predict(run.model, run.plan, run.profile, efficiency=shares[run.model], must_fit=False).seconds for run in measured]
    return np.array(times) / [run.seconds for run in measured] - 1
