"""Lab 7, real training: the tasks and the feedback on their answers."""

from hybridlab import formulas
from hybridlab.checks import known_name
from hybridlab.course.published.simulator import simulator
from hybridlab.course.tasks.answers import Mistake, near, require_number, require_numbers, require_parts, require_text
from hybridlab.course.tasks.checking import Feedback, judge_value, right, task, wrong, wrong_value
from hybridlab.training import Network
from hybridlab.wire import BF16, FP16, FP32, INT8


@task(
    "lab07.t1",
    title="Microbatches of a replica",
    prompt="give the number of microbatches that each of 3 replicas runs for a global batch of 384 in microbatches of 16 samples",
)
def microbatches_of_a_replica(answer: object) -> Feedback:
    """Judge M = B / (b D) for a global batch of 384, microbatches of 16, 4 stages and 3 replicas."""
    batch, size, stages, replicas = 384, 16, 4, 3
    value, truth = require_number(answer, "a number of microbatches", "4"), batch // (size * replicas)
    ratio, ratio_of_all = (f"{formulas.bubble_ratio(stages, count):.1%}" for count in (truth, truth * replicas))
    return judge_value(
        value,
        truth,
        1e-9,
        lesson=f"so 1F1B on its 4 stages has a bubble ratio of {ratio}, not the {ratio_of_all} of {truth * replicas} microbatches",
        mistakes=[
            (batch // size, "all-replicas", "24 are the microbatches of all 3 replicas together, as the report counts them"),
            (batch // replicas, "samples", "128 are the samples of a replica: they come in microbatches of 16"),
            (
                batch * replicas // size,
                "a-batch-each",
                "72 would be right if each replica had a global batch of its own: the replicas share one",
            ),
            (
                batch / (size * stages),
                "stages-for-replicas",
                "the 3 replicas share the samples, not the 4 stages: each microbatch passes through all stages",
            ),
            (
                batch / (size * replicas * stages),
                "stages-share",
                "the 4 stages share no samples: each microbatch passes through all of them",
            ),
            (1 / truth, "inverted", "this is the other way round"),
        ],
        hint=f"it is not {value:g}: microbatch size x microbatches x replicas is the global batch",
    )


@task(
    "lab07.t2",
    title="How many samples a device keeps",
    prompt="give the samples whose activations devices 0 to 3 of one replica hold at their peaks, as a list of four numbers",
    points=2,
)
def samples_kept(answer: object) -> Feedback:
    """Judge the peaks of 1F1B in samples: K = 4, M = 8, D = 4, a global batch of 128."""
    devices, microbatches, replicas, batch = 4, 8, 4, 128
    values = require_numbers(answer, devices, "count of samples that a device holds")
    peaks = [formulas.peak_activations("1f1b", devices, microbatches, device) for device in range(devices)]
    size = batch // (microbatches * replicas)
    truth = [size * peak for peak in peaks]
    if near(values, truth, 1e-4):
        return right("min(K-d, M) microbatches of 4 samples; the executor has counted the same")
    mistakes: list[Mistake] = [
        (peaks, "microbatches-not-samples", "these are microbatches: how many samples has one?"),
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
            "each of these is one microbatch: a device runs forwards ahead of its first backward",
        ),
        (
            [truth[0]] * devices,
            "device-0-everywhere",
            "device 0 holds so many, but the devices after it wait less for their first backward",
        ),
        (
            [replicas * value for value in truth],
            "not-cut-by-replicas",
            "a microbatch has fewer samples: the global batch is cut into M x D of them",
        ),
        (
            [size * (devices - 1 - device) for device in range(devices)],
            "warm-up-alone",
            "this is the warm-up alone: one more forward comes before the backward",
        ),
    ]
    device = next(place for place in range(devices) if not near(values[place], truth[place], 1e-4))
    side, code = ("fewer", "too-many") if values[device] > truth[device] else ("more", "too-few")
    hint = f"device {device} holds {side} samples than {values[device]:g}: the size of a microbatch times its peak in microbatches"
    return wrong_value(values, mistakes, hint, within=1e-4, code=code)


@task(
    "lab07.t3",
    title="The fewest bytes",
    prompt='give the name of the wire format and the bytes that all devices send in one step with 8 replicas, such as ("FP16", 1000)',
    points=2,
)
def the_fewest_bytes(answer: object) -> Feedback:
    """Judge the cheapest format of the accuracy check, and its bytes in one step on K = 2, D = 8."""
    stages, replicas = 2, 8
    formats = {wire.name: wire for wire in (FP32, FP16, BF16, INT8)}
    parts = require_parts(answer, 2, 'a name and a number, such as ("FP16", 1000)')
    text = require_text(parts[0], "the name of a format", "FP16").strip().upper().removesuffix(", ERROR FEEDBACK")
    name = known_name(text, formats, "format")
    if name != "INT8":
        size = formats[name].payload_bytes(1)
        return wrong("larger-format", f"{name} keeps the accuracy, but sends {size} bytes a number: one row of the table has fewer")
    value = require_number(parts[1], "a number of bytes", "1000")
    sizes = [Network().count(layers) for layers in Network().stages(stages)]
    codes, messages = 2 * (replicas - 1) * sum(sizes), stages * 2 * (replicas - 1) * replicas
    truth = codes + 4 * messages
    of_four = 2 * (4 - 1) * sum(sizes) + 4 * stages * 2 * (4 - 1) * 4
    hint = "a ring sends each of D chunks 2(D-1) times; a message is a chunk and a scale; every stage has a ring"
    return judge_value(
        value,
        truth,
        0.5,
        lesson="2(D-1) bytes a parameter over all replicas, and 4 bytes of scale for each message; error feedback sends nothing more",
        mistakes=[
            (codes, "no-scales", "these are the codes alone: each message has a scale of 4 bytes, too"),
            (
                codes + 4 * messages / stages,
                "scales-of-one-ring",
                "these are the scales of one stage's ring: there are two rings",
            ),
            (
                codes + 4 * messages / replicas,
                "scales-of-one-rank",
                "these are the scales of one rank's messages: each of the 8 replicas sends its own",
            ),
            (codes + messages, "one-byte-scales", "a scale takes 4 bytes, not one"),
            (of_four, "four-replicas", "this is the row of the table: it is for 4 replicas"),
            (
                2 * of_four,
                "proportional",
                "twice the bytes of 4 replicas is too much: each replica sends 2(D-1)/D of its gradients, and that barely grows",
            ),
            (truth / 2, "one-half", "this is the reduce-scatter alone: the all-gather sends as much again"),
            (truth / (stages * replicas), "one-device-alone", "this is the mean of one device: the table counts all of them"),
            (truth / replicas, "one-replica-alone", "this is one replica: the table counts all of them"),
            (4 * codes, "fp32", "this is FP32, 4 bytes a number"),
            (2 * codes, "fp16", "this is FP16, 2 bytes a number"),
            (sum(sizes), "parameters", "this is the number of parameters: what does a ring send of each?"),
        ],
        hint=f"it is not {value:g} bytes: {hint}",
    )


@task(
    "lab07.t4",
    title="Other weights, other accuracies?",
    prompt="give what the program would print, in %, had all its weights begun at -1, and had all begun at 2, as a list of two numbers",
)
def other_weights(answer: object) -> Feedback:
    """Judge the printed accuracy if all weights are -1, and if all are 2. Only the sign of a prediction matters."""
    values = require_numbers(answer, 2, "accuracy in %")
    ones = simulator().accuracy
    truth = [100 - ones, ones]
    proportional = "an accuracy is not proportional to the weights: only the sign of x . v counts"
    first_wrong = not near(values[0], truth[0], 0.005)
    weights = "weights of -1" if first_wrong else "weights of 2"
    return judge_value(
        values,
        truth,
        0.005,
        lesson="-1 turns every prediction, 2 turns none: the number knows nothing of any training",
        mistakes=[
            ([share / 100 for share in truth], "shares", "these are shares of one: the program prints per cent"),
            (truth[::-1], "swapped", "it is the other way round: which of the two turns the sign of x . v?"),
            ([ones, ones], "no-turn", "weights of -1 turn the sign of every x . v, and so every prediction"),
            ([100 - ones, 100 - ones], "both-turn", "weights of 2 double every x . v: does its sign change?"),
            ([100 - ones, 2 * ones], "proportional", proportional),
            ([-ones, 2 * ones], "proportional", proportional),
            (
                [50, 50],
                "expected-value",
                "50 % is the expected value for any weights; but here the 300 labels are the same each time, so count from 49 %",
            ),
        ],
        hint=f"{weights}: the prediction is 1 where x . v > 0; compare its sign with that of the sum of the row",
    )


@task(
    "lab07.t5",
    title="A rate that hides the fault",
    prompt="give the factor on the learning rate with which the published ring trains 6 equal replicas as one device trains",
    points=2,
)
def a_rate_that_hides_the_fault(answer: object) -> Feedback:
    """Judge the factor for the learning rate. If all gradients are equal, the published ring returns gradient / D; the factor is D."""
    replicas = 6
    value = require_number(answer, "a factor", "2")
    return judge_value(
        value,
        replicas,
        1e-9,
        lesson="each chunk is one replica's gradient over D; where all gradients are equal, D times the rate takes the same steps",
        mistakes=[
            (
                1,
                "same-rate",
                "with the same rate the published ring takes smaller steps: by what does it divide, and what has it added up?",
            ),
            (1 / replicas, "inverted", "this is the length of its steps: the factor is the inverse"),
            (replicas - 1, "d-minus-1", "a chunk makes D - 1 hops, but it is divided by D"),
            (2 * (replicas - 1), "hops", "2(D-1) is the number of hops: what is a chunk divided by at the end?"),
            (
                replicas**2,
                "divided-twice",
                "there is only one division by D: the gradients were not added up, so none is D times too large",
            ),
            (0.3 * replicas, "rate-not-factor", "this is the rate itself: the question is the factor"),
            (2, "two-replicas", "2 would be right for two replicas"),
            (4, "four-replicas", "4 would be right for the four replicas of this section"),
            (12, "devices", "12 is the number of devices: the stages have rings of their own"),
        ],
        hint=f"the factor is not {value:g}: try it on six equal rows of numbers: what does the published ring leave of them?",
    )
