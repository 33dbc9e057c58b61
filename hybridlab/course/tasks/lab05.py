"""Lab 5, wire formats: the tasks and the feedback on their answers."""

import numpy as np

from hybridlab import formulas
from hybridlab.arrays import Floats
from hybridlab.checks import known_name
from hybridlab.collectives import AllReduceResult, one_shot_all_reduce, ring_all_reduce
from hybridlab.course.tasks.answers import near, require_count, require_number, require_parts, require_text
from hybridlab.course.tasks.checking import Feedback, judge_value, right, task, wrong, wrong_value
from hybridlab.errors import HybridLabError
from hybridlab.wire import FP16, FP32, INT8, WireFormat

ALGORITHMS = {"ring": ring_all_reduce, "one-shot": one_shot_all_reduce}
MOST_REPLICAS = 64


@task(
    "lab05.t1",
    title="The largest error",
    prompt="give the largest error that INT8 can make in a message whose largest magnitude is 5.08",
)
def the_largest_error(answer: object) -> Feedback:
    """Judge the bound on the error in INT8, half a scale, for a message whose largest magnitude is 5.08."""
    value = require_number(answer, "the largest error", "0.5")
    peak = 5.08
    scale = peak / 127
    hint = "the scale is the largest magnitude / 127, and rounding to the nearest moves a number by half a step at most"
    return judge_value(
        value,
        scale / 2,
        5e-5,
        lesson="half a scale; a number of 0.01 in this message may lose all of itself, and -5.08 arrives as it is",
        mistakes=[
            (
                scale,
                "whole-scale",
                "this is the scale, the step from one code to the next: rounded to the nearest, a number moves by half of it at most",
            ),
            (peak / 256, "128-codes", "there are 127 codes on either side of zero, not 128: 128 would not fit into a signed byte"),
            (
                peak / 128,
                "whole-scale-of-128-codes",
                "there are 127 codes on either side of zero, and rounding moves a number by half a step",
            ),
            (peak * 2.0**-11, "fp16", "this is the bound of FP16 for the largest number"),
            (0.5, "in-scales", "half a step is right, but in units of the scale: multiply it by the scale"),
        ],
        hint=f"the largest error is not {value:g}: {hint}",
    )


@task(
    "lab05.t2",
    title="Count the bytes",
    prompt="give the bytes that all 24 devices together send, for 4 stages, 6 replicas and 1,000 numbers a device in INT8",
)
def count_the_bytes(answer: object) -> Feedback:
    """Judge the bytes of the rings of a mesh: 4 stages, 6 replicas, 1,000 numbers a device, INT8 with one scale a message."""
    stages, replicas, size = 4, 6, 1000
    value = require_number(answer, "a number of bytes", "2448")
    by_wire = {wire.name: stages * int(_all_reduced("ring", wire, replicas, size).bytes_sent.sum()) for wire in (INT8, FP16, FP32)}
    truth = by_wire["INT8"]
    if value == truth:
        return right("each of the 2(D-1) steps of a ring carries every number once, and D scales")
    longest = -(-size // replicas)
    steps = 2 * (replicas - 1)
    return wrong_value(
        value,
        [
            (
                stages * steps * size,
                "no-scales",
                "the scales are missing: each message has a scale of 4 bytes, without which it cannot be decoded",
            ),
            (truth / stages, "one-ring-alone", "this is the ring of one stage: there are 4"),
            (
                truth / 2,
                "one-half",
                "this is one half of the ring: after the reduce-scatter comes the all-gather, with as many messages",
            ),
            (truth / (stages * replicas), "one-device-alone", "this is one device: there are 24"),
            (
                stages * 2 * replicas * (size + 4 * replicas),
                "d-steps",
                "a ring takes 2(D-1) steps: after D-1 of them every chunk is complete",
            ),
            (
                stages * steps * replicas * (longest + 4),
                "equal-chunks",
                "not every chunk has 167 numbers: 1,000 are cut into four of 167 and two of 166",
            ),
            (stages * steps * replicas * (size + 4), "not-cut", "a message carries one chunk, a sixth of the 1,000 numbers"),
            (by_wire["FP16"], "fp16", "this is FP16, with 2 bytes a number and no scales"),
            (by_wire["FP32"], "fp32", "this is FP32, with 4 bytes a number and no scales"),
        ],
        f"the devices do not send {value:,.0f} bytes: count the steps of a ring, what all its ranks send in one step, and the rings",
        within=0.5,
    )


@task(
    "lab05.t3",
    title="As far as FP16 reaches",
    prompt="give the largest number of replicas whose ring can average gradients of 5,000 in FP16",
)
def as_far_as_fp16_reaches(answer: object) -> Feedback:
    """Judge the largest number of replicas for which no partial sum is too large for FP16, if each gradient is 5,000."""
    count = require_count(answer, "a number of replicas", "8")
    if not _fp16_carries(count):
        largest = f"the largest sum on the wire is that of {count - 1:,} gradients, {5000 * (count - 1):,}, and FP16 ends at 65,504"
        return wrong("too-many", f"with {count:,} replicas FP16 is too small: {largest}")
    if not _fp16_carries(count + 1):
        return right("the rank that adds the last gradient takes the mean before it sends: the wire carries at most D-1 gradients")
    why = "the rank that adds the last gradient takes the mean before it sends, so the sum of all D is on no wire"
    return wrong("too-few", f"with {count} replicas FP16 is large enough, but more are possible: {why}")


@task(
    "lab05.t4",
    title="Predict the error",
    prompt="give the NMSE of an INT8 ring of 12 ranks with messages of 2,048 normal numbers",
    points=2,
)
def predict_the_error(answer: object) -> Feedback:
    """Judge the NMSE of an INT8 ring with 12 ranks and messages of 2,048 normal numbers. The answer may be off by 6 %."""
    value = require_number(answer, "an NMSE", "0.0002")
    ranks, crest = 12, formulas.gaussian_crest(2048)
    truth, of_four = formulas.int8_ring_nmse(ranks, crest), formulas.int8_ring_nmse(4, crest)
    if near(value, truth, relative=0.06):
        measured = _nmse(_all_reduced("ring", INT8, ranks, 2048 * ranks), ranks, 2048 * ranks)
        return right(f"run for this check, with fresh numbers, the ring has {measured:.1e}")
    one = formulas.int8_one_shot_nmse(crest) / 2
    return wrong_value(
        value,
        [
            (of_four, "four-ranks", "this is the error on 4 ranks: a ring of 12 rounds its sums more often"),
            (
                3 * of_four,
                "proportional",
                "three times the ranks do not give three times the error: the law is (D-1)/2 + 1, and the 1 does not grow",
            ),
            (one * (ranks - 1) / 2, "no-last-rounding", "this lacks the term 1 of the law: the finished chunk is rounded as well"),
            (one * ranks, "full-roundings", "not every rounding has the full error: the sum of k ranks is k/D of the final sum"),
            (2 * one, "one-shot", "this is the one-shot all-reduce, whose error does not grow"),
            (2 * truth, "stochastic", "this is stochastic rounding: rounding to the nearest has half of that error"),
            (truth**0.5, "root", "this is the square root of the NMSE, which is a mean square"),
            (9 * of_four, "squared", "the NMSE grows with D, not with its square"),
        ],
        f"the NMSE is not {value:.2g}: the law is c²/(12·127²)·((D-1)/2 + 1)",
        relative=0.06,
    )


@task(
    "lab05.t5",
    title="A wire format on a budget",
    prompt='give an all-reduce, a wire format and its block, such as ("ring", "INT8", 256)',
    points=2,
)
def a_wire_format_on_a_budget(answer: object) -> Feedback:
    """Judge an all-reduce, a format and a block by running them: 32 ranks, 65,536 numbers, 128 KiB a rank, NMSE 1e-4."""
    ranks, size, budget, most = 32, 65_536, 128 * 1024, 1e-4
    algorithm, wire = _all_reduce_and_wire(answer)
    result = _all_reduced(algorithm, wire, ranks, size)
    nbytes, error = int(result.bytes_sent.max()), _nmse(result, ranks, size)
    codes, sentences = [], []
    if nbytes > budget:
        codes.append("too-many-scales" if wire.block else "not-int8")
        why = "larger blocks need fewer scales" if wire.block else "INT8 needs one byte a number"
        sentences.append(f"{nbytes - budget:,} bytes too many: {why}")
    if error > most:
        codes.append("ring-rounds-too-often" if algorithm == "ring" else "blocks-too-large")
        why = (
            "a ring of 32 ranks rounds its sums 31 times and the finished chunks once more"
            if algorithm == "ring"
            else "fewer numbers to a scale make a smaller scale"
        )
        sentences.append(f"the error is {error / most:.1f} times too large: {why}")
    summary = f"{wire} by {algorithm}: {nbytes:,} bytes a rank, NMSE {error:.1e}"
    if sentences:
        return wrong(codes[0], summary, *sentences)
    return right(summary, "both limits hold: the all-reduce keeps the error flat, the block lowers it")


def _all_reduce_and_wire(answer: object) -> tuple[str, WireFormat]:
    """Return the algorithm and the wire format of an answer, or raise. The scales are in FP16."""
    parts = require_parts(answer, 3, 'an all-reduce, a wire format and its block, such as ("ring", "INT8", 256)')
    algorithm = known_name(require_text(parts[0], "an all-reduce", "ring").strip().lower(), ALGORITHMS, "all-reduce")
    name = require_text(parts[1], "a wire format", "INT8").strip().upper()
    block = None if parts[2] in (None, "None", "") else require_number(parts[2], "a block", "256")
    if block is not None and block != int(block):
        raise HybridLabError(f"a block is a whole number of numbers, or None for the whole message, not {block:g}", "not-a-whole-number")
    scale = "FP16" if name == "INT8" else "FP32"
    return algorithm, WireFormat(name, block=None if block is None else int(block), scale=scale)


def _all_reduced(algorithm: str, wire: WireFormat, ranks: int, size: int) -> AllReduceResult:
    """Return the result of an all-reduce of normal numbers. The same sizes always give the same numbers."""
    return ALGORITHMS[algorithm](_normal_numbers(ranks, size), wire)


def _normal_numbers(ranks: int, size: int) -> Floats:
    return np.random.default_rng([ranks, size]).standard_normal((ranks, size))


def _nmse(result: AllReduceResult, ranks: int, size: int) -> float:
    mean = _normal_numbers(ranks, size).mean(axis=0)
    return float(np.mean((result.values[0] - mean) ** 2) / np.mean(mean**2))


def _fp16_carries(replicas: int) -> bool:
    """Whether a ring with this number of replicas can average gradients of 5,000 in FP16."""
    try:
        ring_all_reduce(np.full((min(replicas, MOST_REPLICAS), MOST_REPLICAS), 5000.0), FP16)
    except HybridLabError:
        return False
    return True
