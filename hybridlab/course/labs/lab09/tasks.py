"""Lab 9, a report on four GPUs and what its milliseconds mean on A100s: the tasks and the feedback on their answers."""

from fractions import Fraction
from functools import cache
from typing import Any

from hybridlab.checks import short_repr
from hybridlab.course.checking.answers import near, require_count, require_numbers
from hybridlab.course.checking.builds import build_task
from hybridlab.course.checking.checking import Feedback, right, task, wrong
from hybridlab.course.checking.expressions import filled
from hybridlab.course.checking.questions import Number, Question, number_task
from hybridlab.course.labs.lab09.iteration import (
    EXAMPLES,
    MISTAKES,
    NAMES,
    TWISTS,
    Numbers,
    iterations,
    pieces_of,
    read_parts,
    read_shape,
    summed,
)
from hybridlab.course.published.benchmarks import BENCHMARK_3, TEST_3, reading_step
from hybridlab.course.published.large_runs import TABLE_1
from hybridlab.course.published.report import BACKWARD, FORWARD, RING_STEP
from hybridlab.errors import HybridLabError
from hybridlab.formulas import one_f_one_b_makespan
from hybridlab.hardware import A100_80GB
from hybridlab.planner import Plan, memory, predict, search

MOST = 2000  # the largest number of microbatches that an answer may give
GPUS, BATCH, SLACK = 64, 512, 1.1  # for task 4; an answer may take SLACK times as long as the fastest plan
SIZES = ("tensor", "pipeline", "data", "microbatch")
WITHIN = 0.02  # the relative error that each part of an iteration may have
NOTHING = {
    "tensor": "no GPUs share a layer, so there is no all-reduce inside it",
    "messages": "with one stage there is no next stage to send to",
    "bubble": "one stage alone has no pipeline to fill and to drain",
    "gradients": "one replica has nobody to average its gradients with",
}


@number_task(
    "lab09.t1",
    title="Microbatches that replicas share",
    draws={"microbatches": (8, 12, 16, 20, 24), "ring_step": (10, 15, 20, 25, 30)},
)
@cache
def shared_microbatches(microbatches: int = 8, ring_step: float = 20) -> Question:
    """Ask for the speedup of 2 stages and 2 replicas that share the microbatches. In reading B a stage takes half of the given times."""
    own, alone = microbatches // 2, microbatches * (FORWARD + BACKWARD)
    step, step_of_twice = (reading_step("B", microbatches=each, ring_step=ring_step) for each in (own, microbatches))
    a, a_of_twice = (reading_step("A", microbatches=each, ring_step=ring_step) for each in (own, microbatches))
    pair = (FORWARD + BACKWARD) / 2  # ms of one microbatch on one stage
    speedup = Number(
        "a speedup",
        step.speedup,
        hint=f"the speedup is not {{value}}: one GPU runs the whole model {microbatches} times; "
        f"how long do two stages take for {own} microbatches, and the rings?",
        mistakes=[
            (
                TEST_3.printed[0],
                "report",
                "this is the report's speedup: its 1210 ms are the step of reading A with 8 microbatches for each replica",
            ),
            (
                2 * alone / step_of_twice.makespan,
                "sixteen-microbatches",
                f"this has {microbatches} microbatches for each replica, {2 * microbatches} in all: the two replicas share {microbatches}",
            ),
            (
                a.speedup,
                "reading-a",
                "this is reading A, where each stage takes 50 and 80 ms: here it takes half",
            ),
            (
                a_of_twice.speedup,
                "reading-a-with-sixteen",
                f"this is reading A with {microbatches} microbatches for each replica: here a stage takes half, and the two replicas share "
                f"{microbatches}",
            ),
            (
                alone / step_of_twice.makespan,
                "eight-against-sixteen",
                f"your one GPU runs {microbatches} microbatches, and your four GPUs run {2 * microbatches}: give both the same work",
            ),
            (
                2 * alone / step.makespan,
                "sixteen-against-eight",
                f"your one GPU runs {2 * microbatches} microbatches, and your four GPUs run {microbatches}: four GPUs cannot be more than "
                "4 times as fast",
            ),
            (
                alone / 2 / step.makespan,
                "four-against-eight",
                f"your one GPU runs {own} microbatches, those of one replica: give it all {microbatches}",
            ),
            (
                alone / (step.makespan - step.all_reduce_time),
                "no-rings",
                f"this lacks the rings, 2(D-1) steps of {ring_step:g} ms after the pipelines",
            ),
            (
                alone / (step.makespan - pair),
                "no-fill-and-drain",
                "this lacks fill and drain: a pipeline takes (M + K - 1)(F + B)",
            ),
            (
                alone / (own * pair),
                "nothing-lost",
                "this is a speedup of 4, without any lost time: where are fill, drain and the rings?",
            ),
            (
                step.makespan,
                "time-of-a-step",
                "this is the time of a step in ms: divide the time of one GPU with the same work by it",
            ),
            (step.efficiency, "efficiency", "this is the efficiency: the speedup is not yet divided by the GPUs"),
        ],
        decimals=2,
        example="3.1",
    )
    as_printed = "; here the report's 1040 ms are the right time to compare with" if microbatches == 8 else ""
    return Question(
        f"give the speedup, to 2 decimals, of 2 stages and 2 replicas that share {microbatches} microbatches, with 50 and 80 ms of the "
        f"whole model and ring steps of {ring_step:g} ms",
        [speedup],
        f"one GPU takes {alone:g} ms for this work and the four take {step.makespan:g} ms{as_printed}",
    )


@number_task("lab09.t2", title="The goal of section 3.4", points=2, draws={"stages": (4, 8, 16), "goal": (70, 75, 78, 80, 85, 90)})
@cache
def the_goal(stages: int = 8, goal: int = 80) -> Question:
    """Ask for the smallest M with which 2 replicas reach an efficiency of ``goal`` %.

    In reading B of the report, the times are those of the whole model, so each of K stages takes 1/K of them.
    """
    replicas, ring_step = 2, 20 * 2 / stages  # ms: 20 ms with 2 stages; a stage of K has 2/K as many gradients

    def efficiency(microbatches: float, reading: int = stages, ring_step: float = ring_step) -> float:
        """Return the efficiency if a stage takes the time of the whole model, divided by ``reading``."""
        forward, backward = FORWARD / reading, BACKWARD / reading
        makespan = one_f_one_b_makespan(stages, int(microbatches), forward, backward) + 2 * (replicas - 1) * ring_step
        return microbatches * (forward + backward) / makespan

    def fewest(reading: int = stages, ring_step: float = ring_step) -> int:
        return next(count for count in range(1, MOST) if efficiency(count, reading, ring_step) >= goal / 100)

    work = (FORWARD + BACKWARD) / stages  # ms of one microbatch on one stage
    times = {"work": work, "others": work / efficiency(1) - work}
    reached = "with {counted(value, 'microbatch')} the efficiency is {work * value / (others + work * value):.4f}"
    truth = fewest()
    with_truth = filled(reached, {**times, "value": truth})
    without_rings = -(-goal * (stages - 1) // (100 - goal))
    like_two, reading_a = fewest(ring_step=RING_STEP), fewest(reading=1)
    names = {2: "half", 4: "a quarter", 8: "an eighth"}
    count = Number(
        "a number of microbatches",
        truth,
        hint=f"{reached}: enough, but fewer are enough too",
        code="more-than-enough",
        given=times,
        mistakes=[
            (
                without_rings,
                "bubble-alone",
                f"{without_rings} comes from the bubble alone, M = {Fraction(goal, 100 - goal)}(K-1): "
                f"the rings take their {2 * ring_step:g} ms as well, and {reached}",
            ),
            (
                like_two,
                "rings-of-two-stages",
                f"{like_two} would be right with the 20 ms of two stages: a stage of {stages} has {names[stages // 2]} of their gradients, "
                f"and {reached}",
            ),
            (
                2 * truth,
                "both-replicas",
                f"{2 * truth} is the number for both replicas: M counts the microbatches of one replica, and {reached}",
            ),
            (
                reading_a,
                "reading-a",
                f"{reading_a} would be right in reading A, where a stage takes 130 ms for every K: "
                f"here it takes 130/{stages} ms, and {reached}",
            ),
            ("value < truth", "too-few", f"{reached}: below {goal / 100:g}, take more"),
        ],
        whole=True,
        most=MOST,
    )
    return Question(
        f"give the smallest number of microbatches of a replica for which {stages} stages and {replicas} replicas reach {goal} % "
        f"of {stages * replicas} GPUs, with ring steps of {ring_step:g} ms",
        [count],
        f"{with_truth}; that is a global batch of {32 * replicas * truth:,} samples in place of the report's 256: "
        "a deep pipeline needs many microbatches",
    )


@number_task("lab09.t3", title="A model that grows with its replicas", points=2, draws={"ring_step": range(4, 40, 2)})
def what_a_step_means(ring_step: int = 10) -> Question:
    """Ask for the parameters of one device, S/2, if a ring step takes the time t. Its gradients have S = D t x 25e9 bytes.

    D takes the values of benchmark 3. The ring uses one HDR port and FP16, and has no latency.
    """
    rows = BENCHMARK_3[1:]
    piece = A100_80GB.network * ring_step / 1000 / 2 / 1e9  # billions of parameters in one message
    truth = [row.replicas * piece for row in rows]

    of_growing_size = "{:g}, {:g} and {:g}".format(*(row.ring_steps * ring_step for row in rows))
    of_fixed_size = "{:g}, {:g} and {:g}".format(*(row.ring_steps * ring_step * rows[0].replicas / row.replicas for row in rows))
    factors = "value[0] / truth[0], value[1] / truth[1], value[2] / truth[2]"

    def times(factor: float) -> list[float]:
        return [factor * true for true in truth]

    parameters = Number(
        "parameters of one device in billions",
        truth,
        hint=f"these are {{value[0] / truth[0]:g}} times the right numbers: {ring_step} ms x 25 GB/s are the bytes of one message, S/D, "
        "and a parameter's gradient takes 2 of them",
        fields=[f"Parameters in billions, {row.replicas} replicas" for row in rows],
        mistakes=[
            (
                [piece] * 3,
                "one-message",
                "these are the parameters in one message: a message holds one of D pieces, so the device has D times as many",
            ),
            (
                [piece / row.replicas for row in rows],
                "constant-gradients",
                "these are the pieces of gradients whose size is the same for each D: here the time of a step is the same for each D",
            ),
            (
                [piece * row.ring_steps for row in rows],
                "steps-added",
                "this adds up the bytes of all steps of a ring: together they are 2(D-1)/D times the gradients",
            ),
            (
                [piece * (row.replicas - 1) for row in rows],
                "half-of-the-steps-added",
                "this adds up the bytes of half of the steps: these are D-1 of the D pieces of the gradients",
            ),
            (times(8), "bits", "this takes the 200 Gb/s of an HDR port as 200 GB/s: these are bits, and the port carries 25 GB/s"),
            (times(2), "gigabytes", "these are the GB of gradients: a parameter's gradient takes 2 bytes"),
            (times(0.5), "fp32", "this takes 4 bytes a parameter, as in FP32: the gradients are in FP16"),
            (
                times(16),
                "gigabits",
                "this takes 200 Gb/s as 200 GB/s, and 1 byte a parameter: 200 Gb/s are 25 GB/s, and a gradient takes 2 bytes",
            ),
            (times(12), "nvlink", "this is NVLink, at 300 GB/s each way: the ring here crosses one HDR port"),
            (
                times(24),
                "nvlink-both-ways",
                "this is NVLink with both directions added up: a rank sends one way while it receives the other",
            ),
            (times(0.9), "nine-tenths", "this takes nine tenths of the line rate, as is usual in practice: here take the whole rate"),
            (times(1000), "millions", "these are millions: give billions"),
            (times(1e9), "ones", "these are parameters: give billions of them"),
            (
                f"max({factors}) - min({factors}) > 0.01 * abs(value[0] / truth[0])",
                "another-shape",
                f"a message of one step holds {ring_step} ms x 25 GB/s, which is S/D: find S for each D, and take 2 bytes a parameter",
            ),
        ],
        decimals=2,
    )
    return Question(
        f"give the parameters of one device, in billions and to 2 decimals, for ring steps of {ring_step} ms with 2, 4 and 8 replicas, "
        "as a list",
        [parameters],
        "a step sends S/D bytes: if its time is the same for every D, then S grows with D, and the model is four times as large with "
        f"8 replicas as with 2; the rings of one model of fixed size take {of_fixed_size} ms, and not {of_growing_size}",
    )


@task(
    "lab09.t4",
    title="A plan for 64 GPUs",
    prompt="give tensor, pipeline, data and microbatch of a plan that fits and is within 10 % of the fastest, such as (8, 2, 4, 4), "
    "with nothing recomputed, one chunk and no sequence parallelism",
    points=3,
)
def a_plan(answer: Any) -> Feedback:
    """Judge a plan for a model of 39.1 billion parameters and 512 samples on 64 A100s.

    The plan has one chunk a device, and neither recomputation nor sequence parallelism.
    """
    names = "tensor, pipeline, data or microbatch"
    sizes = [
        require_count(each, f"each of {names}".replace(" or ", " and "), most=BATCH)
        for each in require_numbers(_sizes_of(answer), 4, names)
    ]
    tensor, pipeline, data, microbatch = sizes
    gpus = tensor * pipeline * data
    if gpus != GPUS:
        product = f"{tensor} x {pipeline} x {data} = {gpus:,} GPUs, not {GPUS}"
        return wrong("another-number-of-gpus", f"{product}: the product of tensor, pipeline and data must be {GPUS}")
    if tensor > A100_80GB.gpus_per_node:
        node = f"the node of {A100_80GB.gpus_per_node} GPUs"
        return wrong("tensor-across-nodes", f"tensor parallelism of {tensor} leaves {node}: its all-reduces need NVLink")
    if BATCH % (data * microbatch):
        cut = f"{BATCH} samples cannot be dealt out to {data} replicas in microbatches of {microbatch}"
        return wrong("batch-not-divisible", f"{cut}: data x microbatch must divide {BATCH}")
    model = next(run.model for run in TABLE_1 if run.billions == 39.1)
    plan = Plan(tensor, pipeline, data, microbatch, BATCH, recompute="none")
    used, time = memory(model, plan), predict(model, plan, A100_80GB, must_fit=False)
    if used.total > A100_80GB.memory:
        need = f"it needs {used.total / 1e9:.1f} of 80 GB: states {used.states / 1e9:.1f}, activations {used.activations / 1e9:.1f}"
        if used.activations > used.states and microbatch > 1:
            return wrong("activations-do-not-fit", f"{need}; smaller microbatches need less")
        pipeline_divides = "pipeline divides only the states, since its first stage holds a microbatch for each stage"
        divides = f"tensor divides both; {pipeline_divides}; data divides neither"
        sharded = ", because every replica keeps all states of its stage (an optimiser that is sharded over the replicas would not)"
        return wrong("states-do-not-fit", f"{need}; {divides}{sharded}")
    simple = (each for each in search(model, GPUS, A100_80GB, BATCH).found if each.plan.recompute == "none" and each.plan.chunks == 1)
    best = next(each for each in simple if not each.plan.sequence_parallel)
    fits = f"it fits, with {used.total / 1e9:.1f} GB, and takes {time.seconds:.1f} s, {time.seconds / best.seconds:.3f} times the fastest"
    if time.seconds <= SLACK * best.seconds:
        return right(f"{fits}; such a prediction can be wrong by more than a few per cent, so a smaller difference says little")
    fastest = predict(model, best.plan, A100_80GB).parts
    more = {name: part - fastest[name] for name, part in time.parts.items()}
    most = max(more, key=lambda name: more[name])
    slower = f"{fits}, with {more[most]:.1f} s more {most.replace('_', ' ')}"
    if most == "matmul":
        layers = model.layers // pipeline
        return wrong(
            "logits-weigh-more",
            f"{slower}: the last stage also computes the logits, and beside only {layers} layers these are a larger part of its time",
        )
    return wrong("too-slow", f"{slower}: which of the four numbers makes that part smaller?")


def _sizes_of(answer: Any) -> Any:
    """Return tensor, pipeline, data and microbatch of an answer that is a dict, and any other answer unchanged.

    Raise an error if one of them is missing, or if another entry of the dict differs from the task.
    """
    if not isinstance(answer, dict):
        return answer
    missing = [name for name in SIZES if name not in answer]
    if missing:
        raise HybridLabError(f"a plan has the entries {', '.join(SIZES)}, and {', '.join(missing)} is missing", "wrong-shape")
    for name, value in (("global_batch", BATCH), ("chunks", 1), ("recompute", "none"), ("sequence_parallel", False)):
        if answer.get(name, value) != value:
            raise HybridLabError(f"in this task the {name} of a plan is {value!r}, not {short_repr(answer[name])}", "another-setting")
    return [answer[name] for name in SIZES]


@build_task(
    "lab09.t5",
    title="The time of an iteration",
    prompt="write a function iteration_time(model, plan, rates) that returns the seconds of each part of an iteration, and their total",
    points=6,
    signature="iteration_time(model, plan, rates)",
    cases=iterations,
    mistakes=MISTAKES,
    twists=TWISTS,
    examples=EXAMPLES,
    reads=read_parts,
    lesson="five parts, each from a count of operations or bytes and a rate; a plan trades one of them for another",
)
def the_time_of_an_iteration(parts: Numbers, model: Numbers, plan: Numbers, rates: Numbers) -> Feedback:
    """Judge the parts of one iteration, one after the other. Each part may differ by 2 % from the time that the library finds."""
    goal = summed(pieces_of(*read_shape(model, plan), rates))
    name = next((name for name in NAMES if not near(parts[name], goal[name], relative=WITHIN)), None)
    if name is None:
        return right()
    if goal[name]:
        return wrong(f"wrong-{name}", f"the part {name!r} is {parts[name] / goal[name]:.4g} times the right value")
    return wrong(f"no-{name}", f"the part {name!r} is {parts[name]:.4g} s, and it must be 0: {NOTHING[name]}")
