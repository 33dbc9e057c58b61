"""Lab 5, wire formats: the tasks and what each says to an answer."""

from typing import Any

import numpy as np

from hybridlab import formulas
from hybridlab.checks import known_name, short_repr
from hybridlab.collectives import AllReduceResult, one_shot_all_reduce, ring_all_reduce
from hybridlab.course.tasks.answers import a_text, mistake_behind, near, require_number
from hybridlab.course.tasks.checking import Feedback, right, task, wrong
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
    """Judge the bound of INT8's error, half a scale, for a message with largest magnitude 5.08."""
    value = require_number(answer, "the largest error", "0.5")
    peak, within = 5.08, 5e-5
    scale = peak / 127
    if near(value, scale / 2, within):
        return right("half a scale; a number of 0.01 in this message may lose all of itself, and -5.08 arrives as it is")
    mistakes = [
        (scale, "this is the scale, the step from one code to the next: rounded to the nearest, a number moves by half of it at most"),
        (peak / 256, "there are 127 codes on either side of zero, not 128: 128 would not fit into a signed byte"),
        (peak / 128, "there are 127 codes on either side of zero, and rounding moves a number by half a step"),
        (peak * 2.0**-11, "this is the bound of FP16 for the largest number"),
        (0.5, "half a step is right, but in units of the scale: multiply it with the scale"),
    ]
    hint = "the scale is the largest magnitude / 127, and rounding to the nearest moves a number by half a step at most"
    return wrong(mistake_behind(value, mistakes, within) or f"the largest error is not {value:g}: {hint}")


@task(
    "lab05.t2",
    title="Count the bytes",
    prompt="give the bytes that all 24 devices together send, for 4 stages, 6 replicas and 1,000 numbers a device in INT8",
)
def count_the_bytes(answer: object) -> Feedback:
    """Judge the bytes of the rings of a mesh: 4 stages, 6 replicas, 1,000 numbers a device, INT8 with one scale a message."""
    stages, replicas, size = 4, 6, 1000
    value = require_number(answer, "a number of bytes", "2448")
    by_wire = {wire.name: stages * int(_run("ring", wire, replicas, size).bytes_sent.sum()) for wire in (INT8, FP16, FP32)}
    truth = by_wire["INT8"]
    if value == truth:
        return right("each of the 2(D-1) steps of a ring carries every number once, and D scales")
    longest = -(-size // replicas)
    steps = 2 * (replicas - 1)
    mistakes = [
        (stages * steps * size, "the scales are missing: 4 bytes with each message, or nobody can decode it"),
        (truth / stages, "this is the ring of one stage: there are 4"),
        (truth / 2, "this is one half of the ring: after the reduce-scatter comes the all-gather, with as many messages"),
        (truth / (stages * replicas), "this is one device: there are 24"),
        (stages * 2 * replicas * (size + 4 * replicas), "a ring takes 2(D-1) steps: after D-1 of them every chunk is complete"),
        (stages * steps * replicas * (longest + 4), "not every chunk has 167 numbers: 1,000 are cut into four of 167 and two of 166"),
        (stages * steps * replicas * (size + 4), "a message carries one chunk, a sixth of the 1,000 numbers"),
        (by_wire["FP16"], "this is FP16, with 2 bytes a number and no scales"),
        (by_wire["FP32"], "this is FP32, with 4 bytes a number and no scales"),
    ]
    hint = "count the steps of a ring, what all its ranks send in one step, and the rings"
    return wrong(mistake_behind(value, mistakes, 0.5) or f"the devices do not send {value:,.0f} bytes: {hint}")


@task(
    "lab05.t3",
    title="As far as FP16 reaches",
    prompt="give the largest number of replicas whose ring can average gradients of 5,000 in FP16",
)
def as_far_as_fp16_reaches(answer: object) -> Feedback:
    """Judge the largest number of replicas for which no partial sum of gradients of 5,000 leaves FP16."""
    count = _a_count(answer)
    if not _fp16_carries(count):
        message = f"the largest sum on the wire is that of {count - 1:,} gradients, {5000 * (count - 1):,}, and FP16 ends at 65,504"
        return wrong(f"with {count:,} replicas FP16 is too small: {message}")
    if not _fp16_carries(count + 1):
        return right("the rank that adds the last gradient takes the mean before it sends: the wire carries at most D-1 gradients")
    known = "the rank that adds the last gradient takes the mean before it sends, so the sum of all D is on no wire"
    return wrong(f"with {count} replicas FP16 is large enough, but more are possible: {known}")


@task(
    "lab05.t4",
    title="Predict the error",
    prompt="give the NMSE of an INT8 ring of 12 ranks with messages of 2,048 normal numbers",
    points=2,
)
def predict_the_error(answer: object) -> Feedback:
    """Judge the NMSE of a ring of 12 ranks in INT8, messages of 2,048 normal numbers, up to 6 %."""
    value = require_number(answer, "an NMSE", "0.0002")
    ranks, crest = 12, formulas.gaussian_crest(2048)
    truth, known = formulas.int8_ring_nmse(ranks, crest), formulas.int8_ring_nmse(4, crest)
    within = 0.06 * truth
    if near(value, truth, within):
        measured = _nmse(_run("ring", INT8, ranks, 2048 * ranks), ranks, 2048 * ranks)
        return right(f"run for this check, with fresh numbers, the ring has {measured:.1e}")
    one = formulas.int8_one_shot_nmse(crest) / 2
    mistakes = [
        (known, "this is the error on 4 ranks: a ring of 12 rounds its sums more often"),
        (3 * known, "three times the ranks is not three times the error: the law is (D-1)/2 + 1, and the 1 does not grow"),
        (one * (ranks - 1) / 2, "this lacks the 1: the finished chunk is rounded as well"),
        (one * ranks, "not every rounding counts fully: the sum of k ranks is k/D of the final one"),
        (2 * one, "this is the one-shot all-reduce, whose error does not grow"),
        (2 * truth, "this is stochastic rounding: to the nearest it is half of that"),
        (truth**0.5, "this is the root of it: the NMSE is a mean square"),
        (9 * known, "the NMSE grows with D, not with its square"),
    ]
    return wrong(mistake_behind(value, mistakes, 0.06 * value) or f"the NMSE is not {value:.2g}: the law is c²/(12·127²)·((D-1)/2 + 1)")


@task(
    "lab05.t5",
    title="A wire format on a budget",
    prompt='give an all-reduce, a wire format and its block, such as ("ring", "INT8", 256)',
    points=2,
)
def a_wire_format_on_a_budget(answer: object) -> Feedback:
    """Judge an all-reduce, a format and a block by running them: 32 ranks, 65,536 numbers, 128 KiB a rank, NMSE 1e-4."""
    ranks, size, budget, most = 32, 65_536, 128 * 1024, 1e-4
    algorithm, wire = _choice(answer)
    result = _run(algorithm, wire, ranks, size)
    nbytes, error = int(result.bytes_sent.max()), _nmse(result, ranks, size)
    message = f"{wire} by {algorithm}: {nbytes:,} bytes a rank, NMSE {error:.1e}"
    faults = []
    if nbytes > budget:
        why = "larger blocks need fewer scales" if wire.block else "INT8 needs one byte a number"
        faults.append(f"{nbytes - budget:,} bytes too many: {why}")
    if error > most:
        why = "a ring of 32 rounds its sums again and again" if algorithm == "ring" else "fewer numbers to a scale make a smaller scale"
        faults.append(f"the error is {error / most:.1f} times too large: {why}")
    return (
        wrong(message, *faults) if faults else right(message, "both limits hold: the all-reduce keeps the error flat, the block lowers it")
    )


def _choice(answer: Any) -> tuple[str, WireFormat]:
    """Return the algorithm and the wire format of an answer, with scales in FP16, or refuse them."""
    if not isinstance(answer, list) or len(answer) != 3:
        raise HybridLabError(f'the answer has three parts, such as ("ring", "INT8", 256), not {short_repr(answer)}')
    algorithm = known_name(a_text(answer[0], "an all-reduce", "ring").strip().lower(), ALGORITHMS, "all-reduce")
    name = a_text(answer[1], "a wire format", "INT8").strip().upper()
    block = None if answer[2] in (None, "None", "") else require_number(answer[2], "a block", "256")
    if block is not None and block != int(block):
        raise HybridLabError(f"a block is a whole number of numbers, or None for the whole message, not {block:g}")
    scale = "FP16" if name == "INT8" else "FP32"
    return algorithm, WireFormat(name, block=None if block is None else int(block), scale=scale)


def _run(algorithm: str, wire: WireFormat, ranks: int, size: int) -> AllReduceResult:
    """Return an all-reduce of normal numbers, the same for the same sizes."""
    return ALGORITHMS[algorithm](_gradients(ranks, size), wire)


def _gradients(ranks: int, size: int) -> Any:
    return np.random.default_rng([ranks, size]).standard_normal((ranks, size))


def _nmse(result: AllReduceResult, ranks: int, size: int) -> float:
    mean = _gradients(ranks, size).mean(axis=0)
    return float(np.mean((result.values[0] - mean) ** 2) / np.mean(mean**2))


def _fp16_carries(replicas: int) -> bool:
    """Whether a ring of so many replicas can average gradients of 5,000 in FP16."""
    try:
        ring_all_reduce(np.full((min(replicas, MOST_REPLICAS), MOST_REPLICAS), 5000.0), FP16)
    except HybridLabError:
        return False
    return True


def _a_count(answer: object) -> int:
    number = require_number(answer, "a number of replicas", "8")
    if number != int(number) or number < 1:
        raise HybridLabError(f"a number of replicas is a whole number of at least 1, not {number:g}")
    return int(number)
