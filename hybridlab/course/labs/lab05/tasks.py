"""Lab 5, wire formats: the tasks, and the feedback on answers to them."""

from dataclasses import replace
from typing import Any

import numpy as np

from hybridlab import formulas
from hybridlab.arrays import Floats
from hybridlab.checks import counted, distinct_texts, known_name
from hybridlab.collectives import AllReduceResult, one_shot_all_reduce, ring_all_reduce
from hybridlab.course.checking.answers import require_number, require_parts, require_text
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, right, task, wrong
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab05 import decode, encode, feedback
from hybridlab.course.labs.lab05.feedback import STEPS, Average
from hybridlab.course.labs.lab05.messages import Encoded, of_each, peak, there_are
from hybridlab.errors import HybridLabError
from hybridlab.wire import FP16, Packet, WireFormat

ALGORITHMS = {"ring": ring_all_reduce, "one-shot": one_shot_all_reduce}
ROUNDED = 1e-6  # a share of a number: the largest error that rounding to float32 may cause
HALF_A_SCALE = 0.5001  # in units of the scale: 0.5, and a margin for the rounding of the scale to float32


@build_task(
    "lab05.t1",
    title="Build encode",
    prompt="write a function encode(values, block) that returns the INT8 codes and the scales of a message",
    points=6,
    signature="encode(values, block)",
    cases=encode.messages,
    reads=encode.codes_and_scales,
    fresh=True,
    within=1e-6,
    mistakes=encode.MISTAKES,
    twists=encode.TWISTS,
    examples=encode.EXAMPLES,
    lesson="one scale a block, and each number is at most half a scale from what its code decodes to",
)
def build_encode(result: Encoded, values: Floats, block: int) -> Feedback:
    """Judge a student's scales, which must be those of the library, and codes, which must decode to within half a scale of each number."""
    codes, scales = result
    wanted = WireFormat("INT8", block=block).encode(values).scales
    if len(codes) != len(values):
        return wrong("wrong-length", f"{there_are(len(codes), 'code')} for {counted(len(values), 'number')}")
    if len(scales) != len(wanted):
        return wrong("scale-count", f"{there_are(len(scales), 'scale')} for {counted(len(wanted), 'block')}")
    for place in np.flatnonzero(~(np.abs(scales - wanted) <= ROUNDED * wanted)).tolist():
        largest = f"{peak(values[place * block : (place + 1) * block]):.6g}"
        mine, due = distinct_texts(scales[place], wanted[place])
        found = f"block {place} has the scale {mine}, but its largest magnitude is {largest}, so the scale is {largest} / 127 = {due}"
        if np.isclose(scales[place], 127 * float(wanted[place])):
            return wrong("scale-not-divided", found, "the scale is the largest magnitude divided by 127")
        if np.isclose(scales[place] * float(wanted[place]), 1):
            return wrong(
                "scale-inverted", found, "your scale is 127 divided by the largest magnitude: the receiver multiplies by the scale"
            )
        return wrong("wrong-scale", found)
    scale = of_each(scales, block, len(codes))
    for place in np.flatnonzero(codes == -128).tolist():
        return wrong("minus-128", f"number {place} has the code -128, but codes run from -127 to 127")
    for place in np.flatnonzero(np.abs(codes * scale - values) > HALF_A_SCALE * scale).tolist():
        decoded = f"which decodes to {codes[place] * scale[place]:.6g}"
        nearest = f"the nearest code is {np.rint(values[place] / (scale[place] or 1)):.0f}"
        return wrong("wrong-code", f"number {place}, {values[place]:.6g}, has the code {codes[place]}, {decoded}: {nearest}")
    return right()


@number_task(
    "lab05.t2",
    title="Count the bytes",
    draws={"stages": (3, 4, 5, 8), "replicas": (5, 6, 8, 10), "size": (1200, 2400, 3600)},
)
def count_the_bytes(stages: int = 4, replicas: int = 6, size: int = 1200) -> Question:
    """Ask for the bytes that the rings of a mesh send in INT8, with one scale a message. All chunks have the same length."""
    steps, chunk = 2 * (replicas - 1), size // replicas
    truth = stages * formulas.ring_bytes(replicas, size, itemsize=1, scale_bytes=4)
    nbytes = Number(
        "a number of bytes",
        truth,
        hint="not {value} bytes: count the steps of a ring, the bytes that its ranks send in one step, and the rings",
        mistakes=[
            (stages * steps * size, "no-scales", "your answer lacks the scales: each message has one scale of 4 bytes"),
            (truth / stages, "one-ring-alone", f"your answer has the bytes of the ring of one stage: there are {stages} rings"),
            (truth / 2, "one-half", "your answer has one half of the ring: the all-gather sends as many messages as the reduce-scatter"),
            (
                truth / (stages * replicas),
                "one-device-alone",
                f"your answer has the bytes of one device: there are {stages * replicas} devices",
            ),
            (
                stages * 2 * replicas * replicas * (chunk + 4),
                "d-steps",
                "your answer has 2D steps: a ring takes 2(D-1) steps, because after D-1 of them every chunk is complete",
            ),
            (
                stages * steps * replicas * (size + 4),
                "not-cut",
                f"in your answer a message carries all {size:,} numbers: a message carries one chunk, {chunk} of them",
            ),
            (2 * stages * steps * size, "fp16", "your answer is for FP16, with 2 bytes a number and no scales"),
            (4 * stages * steps * size, "fp32", "your answer is for FP32, with 4 bytes a number and no scales"),
        ],
        example="2448",
    )
    sizes = f"{stages} stages, {replicas} replicas and {size:,} numbers a device"
    return Question(
        f"give the bytes that all {stages * replicas} devices together send, for {sizes} in INT8 with one scale a message",
        [nbytes],
        "in each of the 2(D-1) steps a ring sends every number once, and D scales",
    )


@build_task(
    "lab05.t3",
    title="Build decode",
    prompt="write a function decode(codes, scales, block) that returns the numbers of a message as float64",
    points=3,
    signature="decode(codes, scales, block)",
    cases=decode.packets,
    reads=decode.decoded_numbers,
    fresh=True,
    mistakes=decode.MISTAKES,
    twists=decode.TWISTS,
    examples=decode.EXAMPLES,
    lesson="each number is its code times the scale of its block",
)
def build_decode(values: Floats, codes: np.ndarray[Any, Any], scales: np.ndarray[Any, Any], block: int) -> Feedback:
    """Judge a student's decoded numbers. They must equal the numbers of the library up to rounding to float32."""
    if len(values) != len(codes):
        return wrong("wrong-length", f"{there_are(len(values), 'number')} for {counted(len(codes), 'code')}")
    wire = WireFormat("INT8", block=block)
    wanted = wire.decode(Packet(wire, codes, scales)).astype(np.float64)
    for place in np.flatnonzero(~(np.abs(values - wanted) <= ROUNDED * np.abs(wanted))).tolist():
        product = f"the code {codes[place]} and the scale {scales[place // block]:.6g}"
        due, mine = distinct_texts(wanted[place], values[place])
        return wrong("wrong-number", f"number {place} has {product}, which make {due}, not {mine}")
    return right()


@number_task(
    "lab05.t4",
    title="Predict the error",
    points=2,
    draws={"ranks": range(8, 15), "block": (64, 128, 256, 512)},
)
def predict_the_error(ranks: int = 12, block: int = 256) -> Question:
    """Ask for the NMSE of an INT8 ring. The answer may be off by 6 %."""
    crest = formulas.gaussian_crest(block)
    truth, of_four = formulas.int8_ring_nmse(ranks, crest), formulas.int8_ring_nmse(4, crest)
    one = crest**2 / (12 * 127**2)  # the NMSE of one rounding
    nmse = Number(
        "an NMSE",
        truth,
        hint="the NMSE is not {value:.2g}: the law is c²/(12·127²)·((D-1)/2 + 1), and your number may be off by 6 %",
        mistakes=[
            (of_four, "four-ranks", f"your answer is the error on 4 ranks: a ring of {ranks} rounds its sums more often"),
            (
                ranks / 4 * of_four,
                "proportional",
                f"{ranks} / 4 times the ranks do not give {ranks} / 4 times the error: the term 1 of (D-1)/2 + 1 does not grow",
            ),
            (one, "one-rounding", "your answer is q, the error of one rounding: a ring rounds in each step"),
            (
                (ranks - 1) / 3 * of_four,
                "one-left-out",
                f"you scale the error of 4 ranks by {ranks - 1}/3: the law has (D-1)/2 + 1, and the term 1 is there for any D",
            ),
            (
                one * ranks / 2,
                "half-of-d",
                "your answer is q D / 2: the law has (D-1)/2 + 1, because the finished chunk is rounded as well",
            ),
            (one * (ranks - 1) / 2, "no-last-rounding", "your answer lacks the term 1 of the law: the finished chunk is rounded as well"),
            (
                one * ranks,
                "full-roundings",
                "in your answer every rounding has the full error: the sum of k ranks is only k/D of the final sum",
            ),
            (
                formulas.int8_one_shot_nmse(ranks, crest),
                "one-shot",
                "your answer is the error of the one-shot all-reduce, which stays below that of two roundings",
            ),
            (2 * truth, "stochastic", "your answer is the error of stochastic rounding: rounding to the nearest has half of this error"),
            (truth**0.5, "root", "your answer is the square root of the NMSE: the NMSE is a mean square"),
            ((ranks / 4) ** 2 * of_four, "squared", "your answer grows with the square of D: the NMSE grows with D"),
        ],
        relative=0.06,  # less than the difference of 1/(D+1) that one rank more or fewer makes
        example="0.0002",
    )
    lesson = f"the law gives {truth:.2e}, and you are within 6 % of it"
    prompt = f"give the NMSE of an INT8 ring of {ranks} ranks with blocks of {block} normal numbers; your number may be off by 6 %"
    return Question(prompt, [nmse], lesson)


@task(
    "lab05.t5",
    title="A wire format on a budget",
    prompt='give an all-reduce, a wire format and its block, such as ("ring", "BF16", None)',
    points=2,
)
def a_wire_format_on_a_budget(answer: object) -> Feedback:
    """Judge an all-reduce, a wire format and a block by running them on 32 ranks with 65,536 numbers each.

    A rank may send at most 128 KiB, and the NMSE may be at most 1e-4.
    """
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
        coarse = wire.coding.scaled and wire.name != "INT8"
        codes.append("too-coarse" if coarse else "ring-rounds-too-often" if algorithm == "ring" else "blocks-too-large")
        why = (
            f"{wire.name} rounds too coarsely, with any block for which the bytes suffice"
            if coarse
            else "a ring of 32 ranks rounds its sums 31 times and the finished chunks once more"
            if algorithm == "ring"
            else "a block with fewer numbers has a smaller scale"
        )
        sentences.append(f"the error is {error / most:.1f} times too large: {why}")
    summary = f"{wire} by {algorithm}: {nbytes:,} bytes a rank, NMSE {error:.1e}"
    if sentences:
        return wrong(codes[0], summary, *sentences)
    return right(summary, "both limits hold: one shot keeps the error below two roundings, the block lowers it")


def _all_reduce_and_wire(answer: object) -> tuple[str, WireFormat]:
    """Return the algorithm and the wire format of an answer, or raise an error. Scales are in FP16."""
    parts = require_parts(answer, 3, 'an all-reduce, a wire format and its block, such as ("ring", "BF16", None)')
    algorithm = known_name(require_text(parts[0], "an all-reduce", "ring").strip().lower().replace("_", "-"), ALGORITHMS, "all-reduce")
    name = require_text(parts[1], "a wire format", "INT8").strip().upper()
    block = None if parts[2] in (None, "None", "") else require_number(parts[2], "a block", "256")
    if block is not None and block != int(block):
        raise HybridLabError(f"a block is a whole number of numbers, or None for the whole message, not {block:g}", "not-a-whole-number")
    wire = WireFormat(name, block=None if block is None else int(block))
    return algorithm, replace(wire, scale="FP16") if wire.coding.scaled else wire


def _all_reduced(algorithm: str, wire: WireFormat, ranks: int, size: int) -> AllReduceResult:
    """Return the result of an all-reduce of normal numbers. The same sizes always give the same numbers."""
    return ALGORITHMS[algorithm](_normal_numbers(ranks, size), wire)


def _normal_numbers(ranks: int, size: int) -> Floats:
    return np.random.default_rng([ranks, size]).standard_normal((ranks, size))


def _nmse(result: AllReduceResult, ranks: int, size: int) -> float:
    mean = _normal_numbers(ranks, size).mean(axis=0)
    return float(np.mean((result.values[0] - mean) ** 2) / np.mean(mean**2))


@build_task(
    "lab05.t6",
    title="Build error feedback",
    prompt="write a function with_feedback(gradient, residual, block) that returns what is sent, decoded, and the new residual",
    points=4,
    signature="with_feedback(gradient, residual, block)",
    cases=feedback.gradients,
    reads=feedback.step_or_average,
    fresh=True,
    within=5e-3,  # half of what one code is worth, as a share of the largest number; over many steps rounding errors grow
    library=True,
    mistakes=feedback.MISTAKES,
    twists=feedback.TWISTS,
    examples=feedback.EXAMPLES,
    lesson=f"nothing is lost: the sum of {STEPS} steps has the error of one rounding",
)
def build_feedback(result: Encoded | Average, gradient: Floats, residual: Floats, block: int, steps: int = 1) -> Feedback:
    """Judge a student's result of one step, or the mean of ``steps`` steps.

    In one step, the sent values and the new residual must add up to the gradient and the old residual, and the sent values must come
    from codes. The mean of the sent values over many steps must be close to the gradient.
    """
    wanted = gradient + residual
    scale = of_each(WireFormat("INT8", block=block).encode(wanted).scales, block, len(wanted))
    if isinstance(result, Average):
        for place in np.flatnonzero(~(np.abs(result.sent - gradient) <= scale / steps)).tolist():
            found, due = distinct_texts(result.sent[place], gradient[place])
            mean = f"the mean of what was sent for number {place} is {found}, but its gradient is {due}"
            return wrong("mean-is-off", f"{mean}: each call must use the residual in its arguments")
        return right()
    sent, left = result
    if not len(sent) == len(left) == len(wanted):
        return wrong(
            "wrong-length", f"{len(sent)} values are sent and {len(left)} residuals are left, for {counted(len(wanted), 'number')}"
        )
    lost = np.nan_to_num(np.abs(sent + left - wanted), nan=np.inf)
    place = int(lost.argmax())
    if lost[place] > 1e-12 * max(1.0, peak(wanted)):
        found, due = distinct_texts(sent[place] + left[place], wanted[place])
        together = f"{sent[place]:.6g} is sent and {left[place]:.6g} is left, together {found}"
        return wrong("not-conserved", f"number {place}: {together}; gradient and old residual are {due} together")
    for place in np.flatnonzero(np.abs(left) > HALF_A_SCALE * scale).tolist():
        size, half = distinct_texts(abs(left[place]), scale[place] / 2)
        return wrong("too-far", f"number {place}: {size} is left, more than {half}, half of the scale {scale[place]:.6g}")
    for place in np.flatnonzero(np.abs(sent - np.rint(sent / np.where(scale > 0, scale, 1)) * scale) > scale / 1000).tolist():
        return wrong("not-encoded", f"number {place}: {sent[place]:.6g} is sent, which is not a multiple of the scale {scale[place]:.6g}")
    return right()


@number_task("lab05.t7", title="As far as FP16 reaches", draws={"gradient": range(1500, 10_001, 500)})
def as_far_as_fp16_reaches(gradient: int = 5000) -> Question:
    """Ask for the largest number of replicas for which no partial sum is too large for FP16, if all gradients are the same."""
    largest = int(FP16.coding.largest)
    most = largest // gradient + 1
    replicas = Number(
        "a number of replicas",
        most,
        hint="{value} replicas can be averaged, but more are possible: how many gradients are in the largest sum that is sent?",
        mistakes=[
            (
                most - 1,
                "last-sum-not-sent",
                "one more is possible: the rank that adds the last gradient takes the mean before it sends, so no sum of all D is sent",
            ),
            (
                "value > truth",
                "too-many",
                f"a ring of {{value:,.0f}} sends a sum of {{value - 1:,.0f}} gradients, {{{gradient} * (value - 1):,.0f}}, "
                f"and the largest number in FP16 is {largest:,}",
            ),
        ],
        whole=True,
        example="8",
        code="too-few",
    )
    lesson = "the rank that adds the last gradient takes the mean before it sends: the largest sum that is sent has D-1 gradients"
    return Question(f"give the largest number of replicas whose ring can average gradients of {gradient:,} in FP16", [replicas], lesson)
