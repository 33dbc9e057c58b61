"""Hold the readers of layouts against cases that the projects' own code made, read back what is written, and refuse what cannot be."""

import json
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st

from hybridlab.planner import Chunk, Cut, read_cut, write_cut

CASES = json.loads((Path(__file__).parents[1] / "data/cuts.json").read_text(encoding="utf-8"))["cases"]
WHY = {  # a word of the reason in a case, and the code of the refusal
    "multiple of the pipeline size": "not-divisible",
    "multiple of the middle stages": "not-divisible",
    "at least two stages a rank": "not-divisible",
    "a character other than": "not-a-layout",
    "the last layer is not L": "not-a-layout",
    "more than once": "not-a-layout",
    "comes after m": "not-a-layout",
    "m on two stages": "not-a-layout",
    "number of m": "does-not-fit",
    "number of t": "does-not-fit",
    "together with": "does-not-fit",
    "no middle stages": "does-not-fit",
    "interleaving needs": "unsupported-size",
    "method": "unknown-name",
}
MEGATRON, SIZE, LAYOUT = "Megatron-LM", "pipeline-model-parallel-size", "pipeline-model-parallel-layout"
FIRST, LAST = "decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers"
CONFIG = {  # the names of Megatron's arguments in its configuration, where they differ
    FIRST: "num_layers_in_first_pipeline_stage",
    LAST: "num_layers_in_last_pipeline_stage",
    "num-virtual-stages-per-pipeline-rank": "virtual_pipeline_model_parallel_size",
}
TITAN = "parallelism.pipeline_parallel_"
FAMILY = (MEGATRON, "Megatron-Bridge", "NeMo")


def megatron(layers: int, devices: int, layout: object = None, **more: Any) -> Cut:
    return read_cut(MEGATRON, {"num_layers": layers, SIZE: devices, LAYOUT: layout, **more})


def titan(layers: int, devices: int, schedule: str = "1F1B", **more: Any) -> Cut:
    own = {f"{TITAN}{name}": value for name, value in more.items() if name != "modules"}
    own |= {"parallelism.module_fqns_per_model_part": more.get("modules")}
    return read_cut("torchtitan", {"layers": layers, f"{TITAN}degree": devices, f"{TITAN}schedule": schedule, **own})


def deepspeed(method: str, parameters: Sequence[float], stages: int, items: Sequence[str] | None = None) -> Cut:
    named = items or ["Layer"] * len(parameters)
    return read_cut("DeepSpeed", {"partition_method": method, "items": named, "parameters": parameters, "num_stages": stages})


def sizes(cut: Cut) -> list[int]:
    """Return the layers of each stage; the stages are in a loop."""
    return [device[place].layers for place in range(len(cut[0])) for device in cut]


@in_turn("case", [each for each in CASES if each["valid"]])
def test_a_given_cut_is_read(case: dict[str, Any]) -> None:
    cut = read_cut(case["project"], case["options"])
    if "devices" in case:
        assert cut.to_lists() == case["devices"]
        assert cut == Cut(case["devices"])
    elif case["project"] == "torchtitan":
        assert sizes(cut) == case["layers_of_stages"]
        assert cut[0][0].embedding
        assert cut[-1][-1].loss
    else:
        assert [place for [chunk] in cut for place in [chunk.first_layer]] == case["boundaries"][:-1]
        assert sizes(cut) == case["items_of_stages"]


@in_turn("case", [each for each in CASES if not each["valid"]])
def test_a_given_cut_is_refused_for_the_given_reason(case: dict[str, Any]) -> None:
    [code] = {code for words, code in WHY.items() if words in case["reason"]}
    with refusal(code):
        read_cut(case["project"], case["options"])


@in_turn("case", [each for each in CASES if each["project"] == MEGATRON and "num-layers-per-virtual-pipeline-stage" not in each["options"]])
def test_nemo_and_bridge_cut_as_megatron_does(case: dict[str, Any]) -> None:
    for project, before in (("NeMo", "MegatronStrategy."), ("megatron-bridge", "model.")):
        options = {before + CONFIG.get(name, name).replace("-", "_"): value for name, value in case["options"].items()}
        if case["valid"]:
            assert read_cut(project, options).to_lists() == case["devices"]
        else:
            [code] = {code for words, code in WHY.items() if words in case["reason"]}
            with refusal(code):
                read_cut(project, options)


def test_a_layout_can_be_words() -> None:
    stages = [["embedding", " Decoder"], ["decoder", "decoder"], ["decoder", "MTP"], ["loss"]]
    written = megatron(4, 2, "Et|tt|tm|L", mtp_num_layers=1)
    assert read_cut("NeMo", {"num_layers": 4, "mtp_num_layers": 1, "pipeline_model_parallel_size": 2, LAYOUT: stages}) == written


@in_turn(
    "layout, layers",
    [
        ("Et*0|tL", [0, 1]),
        ("Et*1,2|tL", [12, 1]),  # commas have no meaning, in numbers too
        ("E(t)*2*3|L", [4, 0]),  # the group is unrolled first, and what is left over repeats one letter
        ("E(t|*2)*2tL", [1, 0, 1, 0, 1]),
        ("E(t*2|)*3L", [2, 2, 2, 0]),
    ],
)
def test_repeats_are_unrolled_as_megatron_does(layout: str, layers: list[int]) -> None:
    assert sizes(megatron(sum(layers), len(layers), layout)) == layers


def test_stages_lie_in_a_loop_or_fold_back() -> None:
    looped, folded = (titan(6, 2, schedule, first_stage_less_layers=0, last_stage_less_layers=2) for schedule in ("LoopedBFS", "dualpipev"))
    assert [[chunk.first_layer for chunk in device] for device in looped] == [[0, 4], [2, None]]
    assert [[chunk.first_layer for chunk in device] for device in folded] == [[0, None], [2, 4]]
    assert folded[0][1].loss
    # the layers follow one another in a loop, too, but then the loss is not on the last stage
    assert write_cut(folded, "torchtitan")[f"{TITAN}schedule"] == "ZBVZeroBubble"


def test_multi_token_prediction_without_a_layout_is_on_the_last_stage() -> None:
    assert megatron(4, 2, mtp_num_layers=1)[1] == (Chunk(2, 2, loss=True, mtp=1),)


def test_what_the_modules_say_is_what_a_stage_holds() -> None:
    modules = [["tok_embeddings", "layers.0"], ["layers.2", "layers.1"], [], ["layers.3", "norm", "lm_head"]]
    cut = titan(4, 2, "Interleaved1F1B", modules=modules)
    assert cut == Cut([[Chunk(0, 1, True), Chunk(None, 0)], [Chunk(1, 2), Chunk(3, 1, loss=True)]])
    assert cut.warnings == ("stage 2 is empty: it only passes on what it gets",)


@in_turn(
    "cut, told",
    [
        (lambda: megatron(3, 2, "Ett*2|L"), ["'tt*2' is 3 layers, because * repeats only the letter before it; (tt)*2 is 4"]),
        (lambda: megatron(3, 2, "E(tt,*2|)*1L"), ["'tt,*2' is 3 layers"]),
        (lambda: megatron(3, 2, "Et,t*2|L"), []),
        (lambda: megatron(2, 2, "Ett*1|L"), []),
        (lambda: megatron(2, 4, "Ett|*3L"), ["stages 1 and 2 are empty: they only pass on what they get"]),
        (lambda: megatron(2, 2, "E|ttL"), []),
        (lambda: megatron(2, 2, "|EttL"), ["stage 0 is empty", "the embedding is on stage 1, and stage 0 is the first"]),
        (lambda: megatron(2, 2, "EttL|"), ["stage 1 is empty", "the loss is on stage 0, and stage 1 is the last"]),
        (lambda: megatron(1, 2, **{"account-for-embedding-in-pipeline-split": True}), ["stage 0 has no layer, only: embedding"]),
        (lambda: titan(2, 4), ["stage 0 has no layer, only: embedding", "stage 3 has no layer, only: loss"]),
        (lambda: titan(8, 2), []),
        (
            lambda: titan(3, 2, modules=[["tok_embeddings", "layers.1"], ["layers.1", "layer.2", "lm_head"]]),
            [
                "stage 1 names 'layer.2', which the model does not have",
                "layers.0, layers.2 and norm are on no stage",
                "layers.1 is on more",
            ],
        ),
        (
            lambda: titan(2, 2, modules=[["layers.1", "norm", "lm_head"], ["tok_embeddings", "layers.0"]]),
            ["the layers do not follow one another", "the embedding is on stage 1", "the loss is on stage 0"],
        ),
        (lambda: deepspeed("parameters", [1, 4, 1, 1, 2], 3), ["the largest stage has 5, and 4 is possible"]),
        (lambda: deepspeed("Uniform", [1, 1], 4), ["stages 2 and 3 are empty"]),
        (lambda: deepspeed("type:lay:er", [1] * 4, 2), ["partition_method is read up to its second colon: 'er' is left out"]),
    ],
)
def test_what_is_accepted_and_few_expect_is_told(cut: Any, told: list[str]) -> None:
    warnings = cut().warnings
    assert len(warnings) == len(told)
    for sentence, begins in zip(warnings, told, strict=True):
        assert sentence.startswith(begins)


LESS = {"first_stage_less_layers": 0, "last_stage_less_layers": 0}


@in_turn(
    "call, code, words",
    [
        (lambda: read_cut("Megatron", {}), "unknown-name", "Megatron-LM DeepSpeed"),
        (lambda: read_cut(MEGATRON, {SIZE: 2}), "empty", "num-layers"),
        (lambda: read_cut(MEGATRON, {"num-layers": 2, "--num_layers": 2}), "repeated", "num-layers --num_layers"),
        (lambda: megatron(8, 2, virtual_pipeline_model_parallel_size=2), "unknown-name", "num-virtual-stages-per-pipeline-rank"),
        (lambda: megatron(8, 2, **{"account-for-loss-in-pipeline-split": 1}), "not-true-or-false", "account-for-loss 1"),
        (lambda: megatron(4, 2, "Ett|t tL"), "not-a-layout", "character 6, ' tL'"),
        (lambda: megatron(4, 2, "Ett|ttL)"), "not-a-layout", "character 8, ')'"),
        (lambda: megatron(4, 2, "Ett|t*2L*"), "not-a-layout", "character 9, '*'"),
        (lambda: megatron(4, 2, "Ett|(t*2L"), "not-a-layout", "character 5, '(t*2L'"),
        (lambda: megatron(4, 2, "ttE|ttL"), "not-a-layout", "t on stage 0"),
        (lambda: megatron(4, 2, "|"), "not-a-layout", "no letter"),
        (lambda: megatron(4, 2, "Et|tEttL"), "not-a-layout", "E 2 times, stages 0 and 1"),
        (lambda: megatron(4, 2, "Ett|ttt*0m|m|L", mtp_num_layers=2), "not-a-layout", "stage 1 2 to 3"),
        (lambda: megatron(4, 3, "Ett|ttL"), "not-divisible", "2 3"),
        (lambda: megatron(4, 2, "E(t*9999999999)*9|L"), "too-large", "100,000"),
        (lambda: megatron(4, 2, "E" + "(" * 30_000), "too-large", "5,000 30,001"),
        (lambda: megatron(4, 2, [["embedding", "t"], ["loss"]]), "unknown-name", "stage 0 decoder"),
        (lambda: megatron(4, 2, ["Ett", "ttL"]), "wrong-type", "list of words"),
        (
            lambda: megatron(4, 2, "Ett|ttL", num_virtual_stages_per_pipeline_rank=1),
            "does-not-fit",
            "num-virtual-stages-per-pipeline-rank out",
        ),
        (lambda: read_cut("NeMo", {"num_layers": 2, "virtual_pipeline_model_parallel_size": 2, LAYOUT: "EttL"}), "does-not-fit", "1 2"),
        (lambda: megatron(8, 2, num_virtual_stages_per_pipeline_rank=2, no_overlap_p2p_communication=True), "unsupported-size", "3 2"),
        (lambda: megatron(8, 2, num_virtual_stages_per_pipeline_rank=3), "not-divisible", "device 0 4 layers 1, 2, 4"),
        (lambda: megatron(8, 2, num_layers_per_virtual_pipeline_stage=3), "not-divisible", "3 4 layers 1, 2, 4"),
        (
            lambda: megatron(8, 2, **{FIRST: 4, LAST: 4, "num-virtual-stages-per-pipeline-rank": 2}),
            "unsupported-size",
            "device in the middle",
        ),
        (lambda: megatron(8, 4, **{FIRST: 6, LAST: 6}), "does-not-fit", "-4 at most 6"),
        (lambda: megatron(8, 1, **{FIRST: 8, LAST: 8}), "does-not-fit", "another number of devices"),
        (lambda: megatron(8, 4, **{FIRST: 0}), "too-small", FIRST),
        (lambda: megatron(8, 4, **{LAST: 2, "account-for-loss-in-pipeline-split": True}), "does-not-fit", f"{LAST} account-for-loss"),
        (lambda: titan(8, 4, "1f1"), "unknown-name", "1F1B"),
        (lambda: titan(2, 8), "too-large", "2 4 8 stages"),
        (lambda: titan(8, 4, first_stage_less_layers=5), "too-large", "5 at most 3"),
        (lambda: titan(32, 4, layers_per_stage=4, **LESS), "not-divisible", "8 stages take 8"),
        (lambda: titan(32, 4, "ZBVZeroBubble", layers_per_stage=2, **LESS), "not-divisible", "16 stages take 4"),
        (lambda: titan(2, 2, modules=[["layers.0"]]), "not-divisible", "1 stage 2"),
        (lambda: titan(2, 1, modules=[["layers.0"], ["layers.1"]]), "not-divisible", "2 stages 1F1B 1"),
        (lambda: titan(4, 1, modules=[["layers.0", "layers.3"]]), "does-not-fit", "stage 0 without layer 1"),
        (lambda: deepspeed("type:norm", [1, 1], 2), "empty", "type:norm Layer"),
        (lambda: deepspeed("type:(", [1, 1], 2), "not-a-pattern", "type:("),
        (lambda: deepspeed("parameters", [1], 2, ["A", "B"]), "wrong-length", "2 items [1]"),
        (lambda: deepspeed("parameters", [1, -1], 2), "negative", "parameters -1"),
        (lambda: Cut([]), "wrong-length", "no chunk"),
        (lambda: Cut([[Chunk(0, 1)], [Chunk(1, 1), Chunk(2, 1)]]), "wrong-length", "1 to 2"),
        (lambda: Cut([[Chunk(None, 1)]]), "not-a-whole-number", "first_layer of chunk 0 of device 0"),
        (lambda: Cut([[{"layer": 1}]]), "unknown-name", "'layers'"),
        (lambda: write_cut(Cut([[Chunk(0, 2, True)], [Chunk(3, 1, loss=True)]]), MEGATRON), "does-not-fit", "follow one another"),
        (lambda: write_cut(Cut([[Chunk(0, 2, True)], [Chunk(2, 1)]]), "torchtitan"), "does-not-fit", "loss 0"),
        (lambda: write_cut(Cut([[Chunk(0, 2, loss=True)], [Chunk(2, 1, True)]]), "NeMo"), "not-a-layout", "E comes first"),
        (lambda: write_cut(megatron(2, 1, mtp_num_layers=1), "torchtitan"), "does-not-fit", "mtp=0"),
        (lambda: write_cut(megatron(4, 2, num_virtual_stages_per_pipeline_rank=2), "DeepSpeed"), "does-not-fit", "one chunk 2"),
        (lambda: write_cut(megatron(3, 3, "E||tttL"), "DeepSpeed"), "does-not-fit", "stage 1"),
    ],
)
def test_what_a_project_refuses_is_refused(call: Any, code: str, words: str) -> None:
    with refusal(code, *words.split()):
        call()


@st.composite
def cuts(draw: st.DrawFn) -> tuple[str, Cut]:
    """Draw a project and a cut that it can make: stages in a loop or folded, some empty, the embedding first and the loss last."""
    project = draw(st.sampled_from([*FAMILY, "torchtitan", "DeepSpeed"]))
    devices = draw(st.integers(1, 5))
    chunks = draw(st.integers(1, 3)) if devices > 1 and project != "DeepSpeed" else 1
    fewest = int(project == "DeepSpeed")
    layers = draw(st.lists(st.integers(fewest, 4), min_size=devices * chunks, max_size=devices * chunks))
    layers[draw(st.integers(0, len(layers) - 1))] += 1
    firsts = [sum(layers[:place]) for place in range(len(layers))]
    stages = [Chunk(first if count else None, count) for first, count in zip(firsts, layers, strict=True)]
    stages[0] = stages[0]._replace(embedding=True)
    stages[-1] = stages[-1]._replace(loss=True, mtp=0 if project == "torchtitan" else draw(st.integers(0, 2)))
    rows = [stages[place : place + devices] for place in range(0, len(stages), devices)]
    if project == "torchtitan" and chunks == 2 and draw(st.booleans()):
        rows[1].reverse()
    return project, Cut(tuple(zip(*rows, strict=True)))


@given(cuts())
def test_what_is_written_is_read_back(drawn: tuple[str, Cut]) -> None:
    project, cut = drawn
    read = read_cut(project, write_cut(cut, project))
    if project == "DeepSpeed":  # its items are layers, the embedding and the head too
        assert sizes(read) == [chunk.embedding + chunk.layers + chunk.mtp + chunk.loss for [chunk] in cut]
    else:
        assert read == cut
    assert all("empty" in sentence for sentence in read.warnings)


def balanced(weights: Sequence[float], stages: int) -> list[int]:
    """Return where stages begin, by a loop over all ends, stages and begins that keeps the last of equally good begins."""
    kept = {(0, 0): (0.0, np.inf, 0)}
    for end in range(1, len(weights) + 1):
        for stage in range(1, min(end, stages) + 1):
            for begin in range(end):
                high, low, _ = kept.get((begin, stage - 1), (np.inf, np.inf, 0))
                own = sum(weights[:end]) - sum(weights[:begin])
                high, low = max(high, own), min(low, own)
                before = kept.get((end, stage))
                if before is None or high - low <= before[0] - before[1]:
                    kept[end, stage] = high, low, begin
    bounds = [len(weights)]
    for stage in range(stages, 0, -1):
        bounds.insert(0, kept[bounds[0], stage][2])
    return bounds


@given(st.lists(st.integers(0, 12), min_size=1, max_size=9), st.integers(1, 6))
def test_parameters_are_balanced_by_the_rule_of_deepspeed(weights: list[int], stages: int) -> None:
    cut = deepspeed("parameters", weights, stages)
    if len(weights) <= stages:
        assert sizes(cut) == [1] * len(weights) + [0] * (stages - len(weights))
        return
    bounds = balanced(weights, stages)
    assert sizes(cut) == [other - one for one, other in pairwise(bounds)]
    ways = [[0, *inner, len(weights)] for inner in combinations(range(1, len(weights)), stages - 1)]
    largest = [max(sum(weights[one:other]) for one, other in pairwise(way)) for way in (bounds, *ways)]
    assert bool(cut.warnings) == (largest[0] > min(largest[1:]))


def test_a_cut_is_a_sequence_of_devices() -> None:
    cut = megatron(4, 2, "Ett|tt|L|")
    assert (len(cut), cut[-1], cut[:1], list(cut)) == (2, cut.devices[1], cut.devices[:1], list(cut.devices))
    assert hash(cut) == hash(Cut(cut.to_lists()))
    with refusal("out-of-range", "2 devices"):
        cut[2]
    with pytest.raises(AttributeError):
        cut.devices = ()  # type: ignore[misc]
