"""Give junk to every argument of the public names: only a HybridLabError with a code comes out, and the docstring says that it can come.

A call has usual values for all arguments but one.
"""

import importlib
import inspect
import io
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from misuse import BATCH, COSTS, SCHEDULE, TIMELINE, BrokenRepr

import hybridlab
from hybridlab import A100_80GB, INT8, REGISTRY, Costs, HybridLabError, Kind, Link, Mesh, Op, Plan, Transformer, hybrid_step, search, sweep
from hybridlab.course.claims import found
from hybridlab.course.comparisons import compared
from hybridlab.planner import read_cut
from hybridlab.training import Network
from hybridlab.zoo import instance

MODULES = ["automatic", "bound", "collectives", "formulas", "hardware", "planner", "plot", "schedules", "step", "timeline", "training"]
MODULES += ["schedule", "simulation", "engines", "course.claims", "course.comparisons", "course.published", "zoo"]
ELSEWHERE = {  # these work for seconds, or tests of their own give them junk; Python's Enum reads the arguments of Kind
    "rank", "schedule_for", "optimum", "solve", "optimality_gap", "sweep", "search", "accuracy_check", "train", "train_alone", "threads",
    "check", "Kind", "digits", "int8_law", "timeline", "compare", "TrainingWork", "run", "longest_pause", "predict_and_measure",
}  # fmt: skip
MODEL, PLAN, LINK = Transformer(layers=4, hidden=64, heads=4), Plan(1, 2, 2, 1, 8), Link(1e-5, 1e9)
OPTIONS = {"num-layers": 4, "pipeline-model-parallel-size": 2}
CUT = read_cut("Megatron-LM", OPTIONS)
NETWORK, SWEEP = Network((2, 3, 2)), sweep("gpipe", {"devices": 2, "microbatches": [2, 4], "forward": 1, "backward": 2})
USUAL: dict[str, Any] = {
    "schedule": SCHEDULE, "costs": COSTS, "timeline": TIMELINE, "devices": 2, "microbatches": 4, "chunks": 2, "stages": 2, "replicas": 2,
    "rank": 1, "ranks": 4, "device": 0, "stage": 0, "replica": 0, "microbatch": 1, "tensor": 1, "forward": 1.0, "backward": 2.0,
    "weight_gradient": 1.0, "p2p": 0.0, "overlapped": 3.0, "kind": "F", "op": "0F0", "nbytes": 1e6, "seconds": 1e-3, "link": LINK, "inside":
    LINK, "between": LINK, "group": 2, "groups": 2, "algorithm": "ring", "collective": "all-reduce", "size": 8, "itemsize": 4, "count": 2,
    "crest": 4.0, "roundoff": 2.0**-11, "model": MODEL, "plan": PLAN, "profile": A100_80GB, "gpus": 4, "wire": INT8, "values": [[1.0, 2.0],
    [3.0, 4.0]], "gradients": [[1.0, 2.0], [3.0, 4.0]], "kept": 0.5, "unit": "ms", "number": 100.0, "total": 80e9, "activation": 1e9,
    "text": "0F0 0B0", "orders": [["0F0", "0B0"]], "slots": [[[0, 1]], [[2, 3]]], "device_of": [0], "start": TIMELINE.start, "end":
    TIMELINE.end, "network": NETWORK, "weights": [np.zeros(9), np.zeros(8)], "flat": np.zeros(17), "layers": 4, "inputs": np.zeros((4, 2)),
    "labels": np.zeros(4, dtype=int), "samples": 8, "batch": 4, "steps": 2, "rng": np.random.default_rng(0), "title": "title", "summary":
    "summary", "source": "source", "sweep": SWEEP, "x": "microbatches", "y": "makespan", "factor": 1.5, "pipelines": 2, "share": 0.5,
    "hidden": 64, "heads": 4, "latency": 1e-5, "bandwidth": 1e9, "global_batch": 8, "pipeline": 2, "data": 2, "message": "{}", "numbers":
    [1.0], "why": "no message", "flops": 1e12, "series": {"GPipe": [1, 2]}, "x_label": "x", "y_label": "y", "places": {"GPipe": (1, 2)},
    "bars": {"GPipe": {"F": 1}}, "runs": [], "what": "forwards", "ours": [1.0], "theirs": [1.0], "row": SWEEP[0], "columns": ("x",),
    "sender": 0, "receiver": 1, "grid": {}, "instance": instance("even-2x4-m2"), "entry": SCHEDULE, "by": "me", "how": "by hand",
    "project": "Megatron-LM", "options": OPTIONS, "cut": CUT,
}  # fmt: skip
JUNK: list[Any] = [
    None, True, 0, -1, 3, 2.5, 10**400, float("nan"), float("inf"), 1j, "", "x", "1f1b", "\x00", "9" * 5000, b"0F0", [], [1, 2],
    [[1], [2, 3]], [None], {}, {"a": 1}, {3}, np.zeros((2, 0)), np.array([1, 2]), np.array("a"), np.float32(2),
    np.datetime64("2020-01-01"), io.StringIO("F,B"), object(), len, Costs, BrokenRepr(), SCHEDULE, COSTS, TIMELINE, BATCH,
    Op(Kind.F, 9, 9), lambda *given: 1 / 0,
]  # fmt: skip
SAMPLES = {
    **{type(each).__name__: each for each in (COSTS, SCHEDULE, TIMELINE, INT8, MODEL, PLAN, LINK, A100_80GB, NETWORK, SWEEP, CUT)},
    "Mesh": Mesh(2, 2),
    "Family": REGISTRY["1f1b"],
    "HybridStep": hybrid_step(SCHEDULE, COSTS, 2, ring_step=1),
    "Search": search(Transformer(layers=24, hidden=2304, heads=24), 32, A100_80GB),
}


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the name and the value of each public function and class, and of the methods of classes with a sample here."""
    seen = set()
    for module in (hybridlab, *(importlib.import_module(f"hybridlab.{name}") for name in MODULES)):
        own = [name for name, value in vars(module).items() if name[0] != "_" and getattr(value, "__module__", "") == module.__name__]
        for name in getattr(module, "__all__", own):
            value = getattr(module, name)
            if callable(value) and id(value) not in seen and name not in ELSEWHERE:
                seen.add(id(value))
                yield f"{module.__name__}.{name}", value
    for owner, sample in SAMPLES.items():
        for name, method in inspect.getmembers(sample, inspect.ismethod):
            if name[0] != "_" and method.__module__.startswith("hybridlab."):
                yield f"{owner}.{name}", method


def calls(function: Callable[..., Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield the arguments of calls: usual values for all parameters without a default, and junk for one parameter."""
    parameters = list(inspect.signature(function).parameters.values())
    star = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    places = [each.name for each in parameters if each.kind is each.POSITIONAL_ONLY or (star and each.kind is not each.KEYWORD_ONLY)]
    usual = {each.name: USUAL.get(each.name) for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD}
    for changed, value in itertools.product(parameters, JUNK):
        if changed.kind is not changed.VAR_KEYWORD:
            given = usual | {changed.name: value}
            yield tuple(given.pop(name) for name in places if name in given), given


@in_turn("name, function", public())
@pytest.mark.filterwarnings("ignore")
def test_junk_raises_what_the_docstring_says(name: str, function: Callable[..., Any]) -> None:
    says = "Raises\n" in (inspect.getdoc(function) or "")
    for places, given in calls(function):
        raised = None
        try:
            function(*places, **given)
        except HybridLabError as why:
            raised = why
        assert raised is None or raised.code, f"no code: {raised}"
        assert raised is None or says, f"its docstring has no Raises, but: {raised}"


@in_turn(
    "function, arguments, code, words",
    [
        (Kind, ("X",), "unknown-name", ("'X'", "F, B, I, W")),
        (found, ("{:.2f}", "Narayanan"), "does-not-fit", ("{:.2f}",)),
    ],
)
def test_calls_that_ended_in_other_errors(
    function: Callable[..., Any], arguments: tuple[Any, ...], code: str, words: tuple[str, ...]
) -> None:
    with refusal(code, *words):
        function(*arguments)


def test_a_bound_of_a_comparison_is_a_number() -> None:
    with refusal("not-a-number", "worst_bound", "'x'"):
        compared("forwards", "an example", [1.0], [1.0], worst_bound="x")  # type: ignore[arg-type]
