"""Test what all views with a setting share.

The page and Python can change the setting, and a refused value changes nothing.
"""

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st
from misuse import junk
from profiles import examples
from sweep_tables import some_table

from hybridlab import A100_80GB, FP16, INT8, HybridLabError, build, widgets
from hybridlab.training import Trained, TrainedAlone, train, train_alone
from hybridlab.widgets import (
    Bet,
    ClusterExplorer,
    ErrorExplorer,
    MeshView,
    RingStepper,
    ScheduleEditor,
    StepExplorer,
    SweepExplorer,
    TimelineExplorer,
    TrainingCurves,
)
from hybridlab.widgets.view import View


@cache
def curves() -> tuple[dict[tuple[str, ...], Trained], TrainedAlone]:
    """Return two runs and the run with which they are compared."""
    runs = {(str(rate),): train(build("1f1b", 2, 2), 2, steps=3, learning_rate=rate) for rate in (0.1, 0.3)}
    return runs, train_alone(steps=3)


MAKE: dict[str, Callable[[], View]] = {
    "ClusterExplorer": lambda: ClusterExplorer(gpus=A100_80GB, replicas=2, microbatches=(1, 4), microbatch=1, wires=FP16, recompute="full"),
    "ErrorExplorer": lambda: ErrorExplorer((2, 4), INT8, "normal", 64),
    "MeshView": lambda: MeshView((2, 3), (1, 4)),
    "RingStepper": lambda: RingStepper(ranks=(2, 4)),
    "ScheduleEditor": lambda: ScheduleEditor(devices=2, microbatches=3),
    "StepExplorer": lambda: StepExplorer("1f1b", replicas=(1, 2), microbatches=(2, 4), ring_step=1),
    "SweepExplorer": lambda: SweepExplorer(some_table(), "devices"),
    "TimelineExplorer": lambda: TimelineExplorer(devices=(2, 3), microbatches=(2, 4)),
    "TrainingCurves": lambda: TrainingCurves(("Learning rate",), *curves()),
}
each_view = in_turn("name", MAKE)


def setting_of(view: View) -> dict[str, Any]:
    return {name: getattr(view, name) for name in view.SETTING}


def test_every_view_with_a_setting_is_tried_here() -> None:
    assert {name for name in widgets.__all__ if issubclass(getattr(widgets, name), View)} == set(MAKE)


@each_view
def test_what_a_view_sends_and_is_refused_is_answered_with_what_holds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    view = MAKE[name]()
    sent: list[Any] = []
    monkeypatch.setattr(type(view), "_send", lambda self, message, buffers=None: sent.append(message))
    before = setting_of(view)
    for trait in view.SETTING:
        with pytest.raises(HybridLabError) as why:
            view.set_state({trait: [["nothing of the kind"]]})
        assert why.value.code, f"{trait} is refused without a code"
        assert setting_of(view) == before
        assert sent[-2]["state"] == before
        assert sent[-1]["content"] == {"refused": str(why.value)}


@each_view
def test_a_setting_refused_in_part_is_taken_back_whole(name: str) -> None:
    view = MAKE[name]()
    before = setting_of(view)
    other = next(trait for trait in view.SETTING if trait not in ("rank", "step", "time"))
    with pytest.raises(HybridLabError):
        view.set_state(before | {other: before[other], view.SETTING[-1]: [["nothing of the kind"]]})
    assert setting_of(view) == before


@in_turn(
    "name, good, bad",
    [
        ("ClusterExplorer", {"stages": 4}, {"recompute": "none"}),
        ("MeshView", {"stages": 3}, {"rank": 99}),
        ("RingStepper", {"ranks": 4}, {"step": 99}),
        ("StepExplorer", {"replicas": 2}, {"rank": 99}),
        ("ErrorExplorer", {"algorithm": "one-shot"}, {"ranks": 3}),
        ("SweepExplorer", {"at": 3}, {"chosen": {"p2p": 3}}),
    ],
)
def test_a_good_part_beside_a_bad_one_is_not_kept(name: str, good: dict[str, Any], bad: dict[str, Any]) -> None:
    view = MAKE[name]()
    before = setting_of(view)
    with pytest.raises(HybridLabError):
        view.set_state(good | bad)
    assert setting_of(view) == before
    view.set_state(good)
    assert setting_of(view) == before | good


@cache
def shared(name: str) -> View:
    """Return one view for all examples: each junk value is sent to the view in the state that earlier junk has left."""
    return MAKE[name]()


@examples(400)
@given(name=st.sampled_from(list(MAKE)), data=st.data())
def test_junk_from_a_page_is_refused_or_drawn(name: str, data: st.DataObject) -> None:
    view = shared(name)
    state = data.draw(st.dictionaries(st.sampled_from(view.SETTING), junk, max_size=3))
    with contextlib.suppress(TypeError, ValueError, RecursionError):  # a page can send only what JSON can hold
        state = json.loads(json.dumps(state))
        with contextlib.suppress(HybridLabError):
            view.set_state(state)
    json.dumps(setting_of(view), allow_nan=False)
    assert {trait: view.checked(trait, value) for trait, value in setting_of(view).items()} == setting_of(view)
    repr(view)


IN_ANOTHER_ORDER = {
    "TimelineExplorer({'1f1b', 'gpipe'}, devices={2, 4}, microbatches=[8, 4], p2p=1/3, show={'compare': '1f1b'})": lambda: TimelineExplorer(
        ("gpipe", "1f1b"), devices=(2, 4), microbatches=(4, 8), p2p=1 / 3, show={"compare": "1f1b"}
    ),
    "StepExplorer({'1f1b', 'gpipe'}, replicas={2, 1}, overlap={True, False}, ring_step=1/3)": lambda: StepExplorer(
        ("gpipe", "1f1b"), replicas=(1, 2), ring_step=1 / 3
    ),
    "MeshView({3, 2}, [4, 1], show={'rank': 1})": lambda: MeshView((2, 3), (1, 4), show={"rank": 1}),
    "RingStepper(ranks={4, 2}, show={'step': 1})": lambda: RingStepper(ranks=(2, 4), show={"step": 1}),
    "ErrorExplorer(ranks=(4, 2), size=512, show={'formats': ['INT8']})": lambda: ErrorExplorer(
        (2, 4), size=512, show={"formats": ["INT8"]}
    ),
    "ScheduleEditor(devices=2, microbatches=1, forward=1/3)": lambda: ScheduleEditor(devices=2, microbatches=1, forward=1 / 3),
    "Bet('a.b', 'How many?', unit='ms')": lambda: Bet("a.b", "How many?", unit="ms"),
}


def test_the_text_of_a_view_is_the_same_in_another_process_and_for_values_in_another_order() -> None:
    """Notebooks store these texts. A process of its own has another order of the names in a set."""
    program = "\n".join(["from hybridlab.widgets import *", *(f"print({made})" for made in IN_ANOTHER_ORDER)])
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [repr(make()) for make in IN_ANOTHER_ORDER.values()]


@each_view
def test_script_and_class_name_the_same_traits(name: str) -> None:
    kind = getattr(widgets, name)  # the class and not an instance, because ipywidgets gives each instance a class of its own
    script = str(kind._esm)
    named = re.search(r"const SETTING = (\[.*?\]);", script, re.DOTALL)
    assert named
    setting = json.loads(named[1])
    assert sorted(setting) == sorted(kind.SETTING)
    asked = set(re.findall(r'model\??\.get\("(\w+)"\)', script)) | set(setting)
    assert asked == {trait for trait in vars(kind) if trait in kind.class_traits(sync=True)}
