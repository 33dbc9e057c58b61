"""Lab 7, real training: the tasks and the feedback on their answers."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from hybridlab import formulas
from hybridlab.arrays import Floats, Ints
from hybridlab.checks import counted, known_name
from hybridlab.course.checking.answers import near, require_parts, require_text
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, right, task, wrong
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab07 import executors, ring_tests
from hybridlab.course.published.simulator import simulator
from hybridlab.training import Network, loss_and_gradient
from hybridlab.wire import BF16, FP16, FP32, INT8


@build_task(
    "lab07.t1",
    title="Build an executor",
    prompt="write a function run_pipeline(orders, forward, backward, inputs) that returns the loss and a list of each stage's gradient",
    points=8,
    signature="run_pipeline(orders, forward, backward, inputs)",
    cases=executors.pipelines,
    reads=executors.read_run,
    fresh=True,
    mistakes=executors.MISTAKES,
    twists=executors.TWISTS,
    examples=executors.EXAMPLES,
    lesson="every operation ran in its order with its own message, and the sums are those of one device",
)
def build_an_executor(
    run: tuple[float, list[Floats], executors.Faults], orders: list[str], weights: Sequence[Floats], inputs: list[Floats], labels: Ints
) -> Feedback:
    """Judge one run: first its operations, messages and memory, then its loss and gradients. One device computes the right values."""
    loss, gradients, faults = run
    if faults:
        return wrong(*faults[0])
    if len(gradients) != len(weights):
        return wrong(
            "another-size", f"there are {counted(len(gradients), 'gradient')}, not one for each of {counted(len(weights), 'stage')}"
        )
    flat, samples = np.concatenate(weights), np.concatenate(inputs)
    expected, gradient = loss_and_gradient(Network(executors.SIZES), flat, samples, labels.ravel())
    wanted = np.split(gradient, np.cumsum([len(each) for each in weights])[:-1])
    for stage, (found, truth) in enumerate(zip(gradients, wanted, strict=True)):
        if found.shape != truth.shape:
            shapes = f"the gradient of stage {stage} has shape {found.shape}, and its weights have {truth.shape}"
            return wrong("another-shape", f"{shapes}: have you exchanged the two results of backward?" if found.ndim == 2 else shapes)
        if not near(found.tolist(), truth.tolist(), 1e-9):
            place = int(np.argmax(~(np.abs(found - truth) <= 1e-9)))
            return wrong(
                "wrong-gradient", f"number {place} of stage {stage}'s gradient is {found[place]:.6g}; one device finds {truth[place]:.6g}"
            )
    return right() if near(loss, expected, 1e-9) else wrong("wrong-loss", f"the loss is {loss:.6g}; one device finds {expected:.6g}")


@number_task(
    "lab07.t2",
    title="How many samples a device keeps",
    points=2,
    draws={"devices": (3, 4, 5), "microbatches": (7, 8, 9), "replicas": (2, 3, 4), "size": (3, 4, 5)},
)
def samples_kept(devices: int = 4, microbatches: int = 8, replicas: int = 4, size: int = 4) -> Question:
    """Ask how many samples each device holds at most under 1F1B."""
    batch = size * microbatches * replicas
    peaks = [formulas.peak_activations("1f1b", devices, microbatches, device) for device in range(devices)]
    truth = [size * peak for peak in peaks]
    more = "device {place} holds more samples than {value[place]:g}: the size of a microbatch times its peak in microbatches"
    samples = Number(
        "count of samples that a device holds",
        truth,
        example="12",
        hint=more,
        fields=[f"Samples on device {device}" for device in range(devices)],
        code="too-few",
        mistakes=[
            (peaks, "microbatches-not-samples", "these are numbers of microbatches: how many samples has one microbatch?"),
            (
                truth[::-1],
                "reversed",
                "these are the right numbers from the last device to the first: device 0 waits longest for its first backward",
            ),
            (
                [batch // replicas] * devices,
                "all-samples",
                "these are all samples of a replica: 1F1B runs a backward before the last forward",
            ),
            (
                [size] * devices,
                "one-microbatch",
                "each number is that of one microbatch: most devices run more than one forward before their first backward",
            ),
            (
                [truth[0]] * devices,
                "device-0-everywhere",
                "only device 0 holds this many samples: the devices after it wait less for their first backward",
            ),
            (
                [replicas * each for each in truth],
                "not-cut-by-replicas",
                "your microbatch has too many samples: the global batch is cut into M x D microbatches",
            ),
            (
                [size * (devices - 1 - device) for device in range(devices)],
                "warm-up-alone",
                "these are the forwards of the warm-up alone: one more forward comes before the first backward",
            ),
            ("value[place] > truth[place]", "too-many", more.replace("more", "fewer", 1)),
        ],
    )
    sizes = f"1F1B with {devices} stages, {microbatches} microbatches, {replicas} replicas and a global batch of {batch}"
    prompt = f"give the largest number of samples whose activations each device of one replica holds at a time, under {sizes}"
    return Question(f"{prompt}, as a list of {devices} numbers", [samples], lesson=f"min(K-d, M) microbatches of {size} samples")


@task(
    "lab07.t3",
    title="The fewest bytes",
    prompt='give the name of the wire format and the bytes that all devices send in one step with 8 replicas, such as ("FP16", 1000)',
    points=2,
)
def the_fewest_bytes(answer: object) -> Feedback:
    """Judge the wire format with the fewest bytes that keeps the accuracy, and its bytes in one step with K = 2 and D = 8."""
    stages, replicas = 2, 8
    formats = {wire.name: wire for wire in (FP32, FP16, BF16, INT8)}
    parts = require_parts(answer, 2, 'a name and a number, such as ("FP16", 1000)')
    text = require_text(parts[0], "the name of a format", "FP16").strip().upper().removesuffix(", ERROR FEEDBACK")
    name = known_name(text, formats, "format")
    if name != "INT8":
        size = formats[name].payload_bytes(1)
        return wrong("larger-format", f"{name} keeps the accuracy, but sends {size} bytes a number: one row of the table has fewer")
    sizes = [Network().count(layers) for layers in Network().stages(stages)]
    codes, messages = 2 * (replicas - 1) * sum(sizes), stages * 2 * (replicas - 1) * replicas
    truth = codes + 4 * messages
    of_four = 2 * (4 - 1) * sum(sizes) + 4 * stages * 2 * (4 - 1) * 4
    hint = "a ring sends each of D chunks 2(D-1) times; a message is a chunk and a scale; every stage has a ring"
    lesson = "2(D-1) bytes a parameter over all replicas, and 4 bytes of scale for each message; error feedback sends nothing more"
    nbytes = Number(
        "a number of bytes",
        truth,
        hint=f"it is not {{value}} bytes: {hint}",
        mistakes=[
            (codes, "no-scales", "these are the codes alone: each message has a scale of 4 bytes, too"),
            (
                codes + 4 * messages / stages,
                "scales-of-one-ring",
                "this counts the scales of one stage's ring alone: there are two rings",
            ),
            (
                codes + 4 * messages / replicas,
                "scales-of-one-rank",
                "this counts the scales of one rank's messages alone: each of the 8 replicas sends messages",
            ),
            (codes + messages, "one-byte-scales", "a scale takes 4 bytes, not one"),
            (of_four, "four-replicas", "this is the number in the table, which is for 4 replicas: the task has 8 replicas"),
            (
                2 * of_four,
                "proportional",
                "this is twice the bytes of 4 replicas: each parameter is sent 2(D-1) times, which is more than twice as often for 8",
            ),
            (truth / 2, "one-half", "this is the reduce-scatter alone: the all-gather sends as much again"),
            (truth / (stages * replicas), "one-device-alone", "this is the mean of one device: the table counts the bytes of all devices"),
            (truth / replicas, "one-replica-alone", "this is one replica: the table counts the bytes of all replicas"),
            (4 * codes, "fp32", "this is FP32, 4 bytes a number"),
            (2 * codes, "fp16", "this is FP16, 2 bytes a number"),
            (sum(sizes), "parameters", "this is the number of parameters: what does a ring send for each parameter?"),
        ],
        example="1000",
    )
    return nbytes.check(nbytes.read(parts[1])) or right(lesson)


@number_task("lab07.t4", title="Other weights, other accuracies?", draws={"first": (-1, -2, -0.5, -3, -4), "second": (2, 3, 5, 1.5, 4)})
def other_weights(first: float = -1, second: float = 2) -> Question:
    """Ask for two accuracies that the published program prints: with negative and with positive first weights.

    The accuracies depend only on the signs of x . v.
    """
    before, after = map(list, zip(_before_and_after(first), _before_and_after(second), strict=True))
    ones, _ = _before_and_after(1)
    proportional = "an accuracy is not proportional to the weights: only the sign of x . v counts"
    accuracies = Number(
        "accuracy in %",
        after,
        decimals=2,
        hint="the prediction is 1 where x . v > 0: compare its sign with that of the sum of the row",
        fields=[f"Accuracy in % from weights of {weight:g}" for weight in (first, second)],
        mistakes=[
            ([share / 100 for share in after], "shares", "these are shares of one: the program prints per cent"),
            (after[::-1], "swapped", "it is the other way round: which of the two turns the sign of x . v?"),
            ([ones, ones], "no-turn", f"weights of {first:g} turn the sign of every x . v, and so every prediction"),
            ([100 - ones, 100 - ones], "both-turn", f"weights of {second:g} multiply every x . v by {second:g}: does its sign change?"),
            ([100 - ones, second * ones], "proportional", proportional),
            ([first * ones, second * ones], "negative", f"{proportional}, and none is below 0"),
            (
                [50, 50],
                "expected-value",
                "50 % is the expected value for random points; but here the 300 points are the same each time, so count from 49 %",
            ),
            (
                before,
                "before-the-step",
                "these are the accuracies before the step: the step moves the weights, and with seed 9400 this changes some predictions",
            ),
        ],
    )
    wanted = f"give the accuracy in % that the program prints if all weights begin at {first:g}, and if all begin at {second:g}"
    signs = f"{first:g} turns every prediction, {second:g} turns none, and the step turns hardly any: the number knows nothing of training"
    return Question(f"{wanted}, as a list of two numbers to 2 decimals", [accuracies], lesson=signs)


@cache
def _before_and_after(weight: float) -> tuple[float, float]:
    """Return the accuracies before and after the step if all weights begin at ``weight``."""
    run = simulator(initial_weight=weight)
    return run.accuracy_before, run.accuracy


@number_task("lab07.t5", title="A rate that hides the fault", points=2, draws={"replicas": (3, *range(5, 21))})
def a_rate_that_hides_the_fault(replicas: int = 6) -> Question:
    """Ask for the factor on the learning rate with which the published ring trains like one device.

    If all gradients are equal, the published ring returns gradient / D, so the factor is D.
    """
    factor = Number(
        "a factor",
        replicas,
        example="2",
        hint="the factor is not {value}: give the published ring equal rows of numbers; what does it return for them?",
        mistakes=[
            (
                1,
                "same-rate",
                "with the same rate the published ring takes smaller steps: by what does it divide, and what has it added up?",
            ),
            (
                1 / replicas,
                "inverted",
                "with the same rate, the published ring takes this share of the right step: the factor is the inverse",
            ),
            (replicas - 1, "d-minus-1", "a chunk makes D - 1 hops, but it is divided by D"),
            (2 * (replicas - 1), "hops", "2(D-1) is the number of hops: what is a chunk divided by at the end?"),
            (
                replicas**2,
                "divided-twice",
                "this factor would be right after two divisions by D: the published ring divides only once",
            ),
            (0.3 * replicas, "rate-not-factor", "this is the rate itself: the question is the factor"),
            (2, "two-replicas", "2 would be right for two replicas"),
            (4, "four-replicas", "4 would be right for the four replicas of this section"),
            (2 * replicas, "devices", "this is the number of devices: each stage has a ring of its own, with one device of each replica"),
        ],
    )
    return Question(
        f"give the factor on the learning rate with which the published ring trains {replicas} replicas with equal samples like one device",
        [factor],
        lesson="each chunk is one replica's gradient over D; where all gradients are equal, D times the rate takes the same steps",
    )


build_task(
    "lab07.t6",
    title="Write a test that finds the fault",
    prompt="write a function ring_is_right(ring) that returns True if the ring averages as it should, and False if not",
    points=5,
    signature="ring_is_right(ring)",
    cases=ring_tests.rings,
    reads=ring_tests.read_verdict,
    mistakes=ring_tests.MISTAKES,
    twists=ring_tests.TWISTS,
    examples=ring_tests.EXAMPLES,
    lesson="a mean computed another way, for several D and n, finds what no comparison of replicas can find",
)(ring_tests.judge_verdict)
