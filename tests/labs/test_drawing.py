"""Pictures of answers: an order runs as far as it can, devices stop where the error says, and the drawing shows both."""

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from cases import in_turn, refusal
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from profiles import examples
from strategies import any_orders, crossing_orders, decimals, legal_orders, shares, supported

from hybridlab import REGISTRY, Costs, InvalidSchedule, Op, Schedule, Timeline, build, simulate
from hybridlab.course.checking.drawing import Drawing, first_differences, marked_by
from hybridlab.course.checking.partial import Stop, run_partly, timeline_of, turns_of
from hybridlab.course.labs.lab02.tasks import BROKEN
from hybridlab.course.tasks import Feedback, check
from hybridlab.plot import Picture
from hybridlab.schedule.text import Turns, split_text
from hybridlab.step import with_rings

COSTS = Costs(forward=1, backward=2)
GOAL = simulate(build("1f1b", 3, 4), COSTS)
ONE_F_ONE_B = str(build("1f1b", 3, 4))
DEADLOCK = "\n".join(BROKEN)
WRONG_WARMUP = split_text(ONE_F_ONE_B.replace("0F0 0F1 0F2 0B0", "0F0 0F1 0B0 0F2"))


def outcome(orders: Any, costs: Costs) -> tuple[Timeline, list[Stop]]:
    turns = turns_of(orders)
    ran, stops = run_partly(turns, costs)
    return timeline_of(turns, ran, costs.unit), stops


def error_of(orders: Any) -> InvalidSchedule | None:
    try:
        Schedule("yours", orders)
    except InvalidSchedule as why:
        return why
    return None


def same_as_simulated(schedule: Schedule, costs: Costs) -> None:
    wanted = simulate(schedule, costs)
    found, stops = outcome(schedule.turns, costs)
    assert not stops
    assert found.ops == wanted.ops
    np.testing.assert_array_equal(found.start, wanted.start)
    np.testing.assert_array_equal(found.end, wanted.end)
    np.testing.assert_array_equal(found.activations, wanted.activations)
    np.testing.assert_array_equal(found.peak_activations, wanted.peak_activations)
    assert (found.schedule.chunks, found.schedule.paths) == (schedule.chunks, schedule.paths)
    np.testing.assert_array_equal(found.schedule.pairs, schedule.pairs)


@in_turn("name", REGISTRY)
def test_every_registered_schedule_runs_as_the_simulation_says(name: str) -> None:
    for size in ((1, 1), (2, 7), (3, 2), (4, 8)):
        costs = Costs(forward=1.1, backward=2.3, weight_share=0.4, p2p=0.7, overlap=0.3)
        same_as_simulated(build(name, *supported(name, *size)), costs)


@examples(100)
@given(schedule=legal_orders() | crossing_orders(), data=st.data())
def test_every_legal_order_runs_as_the_simulation_says(schedule: Schedule, data: st.DataObject) -> None:
    row = st.lists(decimals, min_size=schedule.devices, max_size=schedule.devices)
    costs = {"forward": data.draw(row), "backward": data.draw(row), "weight_share": data.draw(shares)}
    between = np.array(data.draw(st.lists(row, min_size=schedule.devices, max_size=schedule.devices)))
    np.fill_diagonal(between, 0)
    same_as_simulated(schedule, Costs(**costs, p2p_between=between))


@examples(400)
@given(nodes=any_orders())
def test_devices_stop_at_the_operations_that_the_error_names(nodes: list[list[tuple[str, int, int]]]) -> None:
    orders = [[f"{stage}{kind}{microbatch}" for kind, stage, microbatch in order] for order in nodes]
    _, stops = outcome(orders, COSTS)
    error = error_of(orders)
    if error is None:
        assert not stops
        same_as_simulated(Schedule("drawn", orders), COSTS)
    elif error.code == "deadlock":
        assert {(stop.device, stop.op) for stop in stops} == {(each.device, each.op) for each in error.problems}
        for stop in stops:
            assert f"device {stop.device} stops at {stop.op}: it waits for {stop.needed}, " in str(error)
    else:  # the error names the operations that come before their own input; a device stops there or earlier
        at = {stop.device: orders[stop.device].index(str(stop.op)) for stop in stops}
        assert all(at[each.device] <= each.position for each in error.problems)


def test_the_deadlock_of_lab_2_worked_out_by_hand() -> None:
    """Device 1 waits for 0F3 from 3 on, which stands behind 0B0; device 2 has run the pairs of 0 and 1 and waits for 1F2."""
    timeline, stops = outcome(split_text(DEADLOCK), COSTS)
    assert [(stop.device, str(stop.op), str(stop.needed), stop.time) for stop in stops] == [
        (0, "0B0", "1B0", 3),
        (1, "1F3", "0F3", 3),
        (2, "2F2", "1F2", 8),
    ]
    times = {str(op): (start, end) for op, start, end in zip(timeline.ops, timeline.start, timeline.end, strict=True)}
    assert times == {
        "0F0": (0, 1), "0F1": (1, 2), "0F2": (2, 3), "1F0": (1, 2), "1F1": (2, 3),
        "2F0": (2, 3), "2B0": (3, 5), "2F1": (5, 6), "2B1": (6, 8),
    }  # fmt: skip
    assert timeline.peak_activations.tolist() == [3, 2, 1]


# Each row has orders, where devices stop, and the peaks: worked out by hand.
ILLEGAL: list[tuple[str, list[str], list[float]]] = [
    ("0F0 0B0\n1B0", ["0 at 0B0 for 1B0 at 1", "1 at 1B0 for 1F0 at 0"], [1, 0]),  # 1F0 is missing
    ("0F0 0F0 0B0\n1F0 1B0", [], [2, 1]),  # doubled
    ("0F0 0B0 0B0 0F1\n1F0 1B0", [], [1, 1]),  # a backward without an activation frees nothing
    ("0B0\n1B0", ["0 at 0B0 for 1B0 at 0", "1 at 1B0 for 1F0 at 0"], [0, 0]),  # nothing runs
    ("1F0", ["0 at 1F0 for 0F0 at 0"], [0]),
    ("0F0 1F0 2F0 2B0 1B0 0B0\n3F0", ["0 at 2B0 for 3B0 at 1"], [1, 1 / 3]),  # the last stage has no backward; one device has three stages
    ("0F0 0I0 0W1", ["0 at 0W1 for 0I1 at 2"], [1]),
    ("0F0 0B0\n1F0 1W0 1I0", ["0 at 0B0 for 1I0 at 1", "1 at 1W0 for 1I0 at 2"], [1, 1]),
    ("0F0 (0F0;0B0)", [], [2]),  # no overlapped pair
]


@in_turn("text, where, peaks", ILLEGAL)
def test_illegal_orders_run_as_far_as_they_can(text: str, where: list[str], peaks: list[float]) -> None:
    timeline, stops = outcome(split_text(text), Costs(forward=1, backward=2))
    assert [f"{stop.device} at {stop.op} for {stop.needed} at {stop.time:g}" for stop in stops] == where
    assert timeline.peak_activations.tolist() == pytest.approx(peaks)
    assert isinstance(Drawing(split_text(text), COSTS, GOAL).figure(), Picture)


def test_the_first_output_of_a_doubled_operation_counts_and_a_doubled_backward_frees_nothing() -> None:
    forwards, _ = outcome(split_text("0F0 0F0 0B0\n1F0 1B0"), COSTS)
    assert forwards.start[row_of(forwards, "1F0")] == 1
    backwards, _ = outcome(split_text("0F0 0B0 0B0 0F1"), COSTS)
    assert backwards.activations.tolist() == [1, 1, 1, 1]


operation = st.builds(
    lambda stage, kind, microbatch: f"{stage}{kind}{microbatch}", st.integers(0, 4), st.sampled_from("FBIW"), st.integers(0, 3)
)
turn = operation | st.tuples(operation, operation)


@examples(60)
@given(orders=st.lists(st.lists(turn, max_size=7), max_size=4), wrong=st.lists(operation, max_size=3), with_goal=st.booleans())
def test_any_order_can_be_drawn(orders: Any, wrong: list[str], with_goal: bool) -> None:
    figure = Drawing(turns_of(orders), COSTS, GOAL if with_goal else None, tuple(map(Op.parse, wrong))).figure()
    assert (figure is None) == (not any(orders))
    if figure is not None:
        figure.draw_without_rendering()


def panels(figure: Picture | None) -> list[Axes]:
    assert figure is not None
    return [axes for axes in figure.axes if axes.get_gid() == "timeline"]


def boxes(axes: Axes, gid: str) -> list[Any]:
    """Return left, right, top and bottom of each box: times, and inches below the top of the panel."""
    found = [each for each in axes.patches if each.get_gid() == gid]
    return [(each.get_x(), each.get_x() + each.get_width(), each.get_y(), each.get_y() + each.get_height()) for each in found]


def bars(axes: Axes, kind: str) -> list[Any]:
    (drawn,) = [each for each in axes.collections if each.get_gid() == f"operations {kind}"]
    return [(*path.vertices[:2, 0], path.vertices[0, 1], path.vertices[2, 1]) for path in drawn.get_paths()]


def row_of(timeline: Timeline, text: str) -> int:
    return timeline.ops.index(Op.parse(text))


def test_a_wrong_operation_has_an_outline_around_its_bar_and_a_cross_on_it() -> None:
    marked = first_differences(WRONG_WARMUP, GOAL)
    assert list(map(str, marked)) == ["0B0"]
    yours, _ = panels(Drawing(WRONG_WARMUP, COSTS, GOAL, marked).figure())
    (outline,) = boxes(yours, "wrong")
    assert outline in [pytest.approx(bar) for bar in bars(yours, "B")]
    start = simulate(Schedule("yours", WRONG_WARMUP), COSTS).start[2]
    assert outline[:2] == (start, start + 2)
    (cross,) = [line for line in yours.lines if line.get_marker() == "X"]
    assert cross.get_xydata().tolist() == [[start + 1, outline[2]]]


def test_the_marks_differ_from_every_bar_in_grey() -> None:
    yours, _ = panels(Drawing(WRONG_WARMUP, COSTS, GOAL, (Op.parse("0B0"),)).figure())
    (outline,) = [each for each in yours.patches if each.get_gid() == "wrong"]
    grey = np.dot(to_rgb(outline.get_edgecolor()), (0.299, 0.587, 0.114))
    bar = [
        np.dot(colour[:3], (0.299, 0.587, 0.114))
        for each in yours.collections
        if "operations" in (each.get_gid() or "")
        for colour in each.get_facecolor()
    ]
    assert min(bar) - grey > 0.3
    assert outline.get_linewidth() >= 2


def test_both_timelines_have_one_axis_of_time() -> None:
    for text in (ONE_F_ONE_B, DEADLOCK, str(build("gpipe", 3, 4)), str(build("1f1b", 3, 7))):
        yours, goal = panels(Drawing(split_text(text), COSTS, GOAL).figure())
        assert yours.get_xlim() == goal.get_xlim()
        assert yours.get_xlim()[1] >= GOAL.makespan
        assert yours.get_position().x0 == goal.get_position().x0
        assert yours.get_position().y0 > goal.get_position().y1
        assert [bar[:2] for bar in bars(goal, "F")] == [
            (s, e) for s, e, k in zip(GOAL.start, GOAL.end, GOAL.schedule.kind, strict=True) if k == 0
        ]


@in_turn("text, goal", [(DEADLOCK, GOAL), (DEADLOCK, None), (ONE_F_ONE_B.replace("1F2 ", ""), None), ("0B0\n1B0", None)])
def test_a_box_in_the_picture_says_where_a_device_stops_and_what_it_waits_for(text: str, goal: Timeline | None) -> None:
    _, stops = outcome(split_text(text), COSTS)
    figure = Drawing(split_text(text), COSTS, goal).figure()
    yours = panels(figure)[0]
    drawn = boxes(yours, "stop")
    assert [box[0] for box in drawn] == [stop.time for stop in stops]
    assert len({box[2] for box in drawn}) == len(stops) > 0
    assert all(box[1] <= yours.get_xlim()[1] * (1 + 1e-9) for box in drawn)
    texts = [each.get_text() for each in yours.texts if "waits for" in each.get_text()]
    assert [words.removesuffix(", which is missing") for words in texts] == [f"{stop.op} waits for {stop.needed}" for stop in stops]
    assert [words.endswith("missing") for words in texts] == [str(stop.needed) not in text for stop in stops]
    figure.draw_without_rendering()
    written = [each for each in yours.texts if "waits for" in each.get_text()]
    for box, words in zip([each for each in yours.patches if each.get_gid() == "stop"], written, strict=True):
        outer, inner = box.get_window_extent(), words.get_window_extent()
        assert outer.x0 <= inner.x0
        assert inner.x1 <= outer.x1


def test_activations_that_a_stopped_device_keeps_are_drawn_to_the_end() -> None:
    yours, _ = panels(Drawing(split_text(DEADLOCK), COSTS, GOAL).figure())
    assert [line.get_ydata()[-1] for line in yours.lines if line.get_gid() == "activations"] == [3, 2, 0]


@in_turn(
    "orders, marked, sentences",
    [
        (
            split_text(ONE_F_ONE_B),
            (),
            ["Yours, 3 devices, 4 microbatches: makespan 18 ms, bubble ratio 0.333, peak", "by device: 3, 2, 1."],
        ),
        (split_text(ONE_F_ONE_B), (), ["Below, on the same axis of time, the goal, 3 devices, 4 microbatches: makespan 18 ms"]),
        (WRONG_WARMUP, ("0B0",), ["Marked as wrong: 0B0 on device 0 from 7 to 9 ms."]),
        (
            split_text(DEADLOCK),
            ("1F3",),
            ["stops at 8 ms", "Device 1 stops at 1F3 at 3 ms: it waits for 0F3.", "wrong: 1F3 (never starts)."],
        ),
        (split_text("0F0 0B0\n1B0"), (), ["it waits for 1F0, which is missing."]),
        (
            split_text("0F0 0F0 0B0"),
            ("0F0",),
            ["ends at 4 ms, but is not a valid", "0F0 on device 0 from 0 to 1 ms and on device 0 from 1 to 2 ms."],
        ),
    ],
)
def test_the_alternative_text_says_what_the_picture_shows(orders: Turns, marked: tuple[str, ...], sentences: list[str]) -> None:
    figure = Drawing(orders, COSTS, GOAL, tuple(map(Op.parse, marked))).figure()
    assert figure is not None
    for sentence in sentences:
        assert sentence in figure.alt_text, figure.alt_text
    assert ("Marked" in figure.alt_text) == bool(marked)


@in_turn(
    "drawing",
    [
        Drawing((), COSTS, GOAL),
        Drawing(((), ()), COSTS, GOAL),
        Drawing(split_text(ONE_F_ONE_B), None, GOAL),
        Drawing(build("gpipe", 17, 1).turns, COSTS),
        Drawing(build("gpipe", 1, 129).turns, COSTS),
        Drawing(split_text("999999999F0"), COSTS),
        Drawing(split_text("0F999999999"), COSTS),
        Drawing(split_text(ONE_F_ONE_B), COSTS, simulate(build("gpipe", 17, 1), COSTS)),
        Drawing(split_text(ONE_F_ONE_B), Costs(forward=[1, 2], backward=2)),
        Drawing(split_text("0F0 2F0\n3F0\n1F0"), Costs(forward=1, backward=2, p2p_between=[1, 1])),
    ],
)
def test_what_has_no_picture_draws_nothing(drawing: Drawing) -> None:
    assert drawing.figure() is None
    with pytest.raises(NotImplementedError):
        Feedback(False, ("no",), drawing=drawing)._ipython_display_()


def test_the_largest_order_is_drawn() -> None:
    schedule = build("1f1b", 16, 64)
    assert isinstance(Drawing(schedule.turns, COSTS, simulate(schedule, COSTS), (schedule.ops[100],)).figure(), Picture)


def test_costs_that_do_not_fit_the_goal_are_refused() -> None:
    with refusal("different-units", "s", "ms"):
        Drawing((), Costs(forward=1, backward=2, unit="s"), GOAL)
    with refusal("several-settings", "(2,)"):
        Drawing((), Costs(forward=[[1], [2]], backward=2))


def test_times_of_the_students_own_are_drawn_as_they_are() -> None:
    starts, ends = GOAL.start + 1.5, GOAL.end + 1.5
    early = row_of(GOAL, "1F0")
    starts[early], ends[early] = 0.25, 1.75  # before its input, and across another operation
    ends[row_of(GOAL, "2B3")] -= 4  # before its start
    figure = Drawing.of_times(starts, ends, GOAL, [Op.parse("1F0")]).figure()
    yours, goal = panels(figure)
    assert yours.get_xlim() == goal.get_xlim()
    drawn = sorted(bar[:2] for kind in "FB" for bar in bars(yours, kind))
    assert drawn == sorted((min(pair), max(pair)) for pair in zip(starts, ends, strict=True))
    (outline,) = boxes(yours, "wrong")
    assert outline[:2] == (0.25, 1.75)
    assert outline in [pytest.approx(bar) for bar in bars(yours, "F")]
    assert figure is not None
    assert "Marked as wrong: 1F0 on device 1 from 0.25 to 1.75 ms." in figure.alt_text


NO_TIMES = [np.append(GOAL.start[:-1], odd) for odd in (np.nan, np.inf, -1.0, 1e300)]


@in_turn("starts", [[], [1, 2], None, "now", [[1]], [None] * 24, ["x"] * 24, *NO_TIMES])
def test_times_that_no_axis_can_show_draw_nothing(starts: Any) -> None:
    assert Drawing.of_times(starts, GOAL.end, GOAL).figure() is None
    assert Drawing.of_rings(starts, [1, 2, 3], GOAL).figure() is None


def test_rings_are_drawn_beside_the_operations_of_their_stage() -> None:
    goal = with_rings(GOAL, [(18, 22), (17, 21), (15, 19)])
    figure = Drawing.of_rings([16, 17, 15], [20, 21, 19], GOAL, goal, [0]).figure()
    yours, below = panels(figure)
    for axes, starts in ((yours, (16, 17, 15)), (below, (18, 17, 15))):
        first = next(each for each in axes.collections if each.get_gid() == "spans reduce-scatter")
        second = next(each for each in axes.collections if each.get_gid() == "spans all-gather")
        assert [tuple(path.vertices[:2, 0]) for path in first.get_paths()] == [(start, start + 2) for start in starts]
        assert [tuple(path.vertices[:2, 0]) for path in second.get_paths()] == [(start + 2, start + 4) for start in starts]
    ((left, right, top, bottom),) = boxes(yours, "wrong")
    assert (left, right) == (16, 20)
    assert bars(yours, "F")[0][3] <= top < bottom < bars(yours, "F")[4][2]
    assert figure is not None
    assert "Marked as wrong: the ring of stage 0 on device 0 from 16 to 20 ms." in figure.alt_text


def test_first_differences_compares_orders_of_any_length() -> None:
    assert first_differences(GOAL.schedule.turns, GOAL) == ()
    assert first_differences((), GOAL) == ()
    assert list(map(str, first_differences(split_text("0F0 0B0\n1F0 1B0\n2F0 2B0"), GOAL))) == ["0B0", "1B0"]


def test_the_text_and_the_verdict_do_not_depend_on_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = Drawing(split_text(ONE_F_ONE_B), COSTS)
    bare, drawn = (Feedback(False, ("no",), "lab02.t1", "code", drawing=each) for each in (None, drawing))
    assert bare == drawn
    assert hash(bare) == hash(drawn)
    assert repr(bare) == repr(drawn)
    assert set(DisplayFormatter().format(bare)[0]) == {"text/plain"}
    shown: list[Any] = []
    monkeypatch.setattr("IPython.display.display", lambda what, raw=False: shown.append(what))
    drawn._ipython_display_()
    figure, text = shown
    assert isinstance(figure, Picture)
    assert text == {"text/plain": repr(bare)}


LINE = "device 1: 1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3"
# Each row has a task, an answer, and what is marked.
ANSWERS: list[tuple[str, str, str]] = [
    ("lab02.t1", ONE_F_ONE_B, ""),
    ("lab02.t1", ONE_F_ONE_B.replace("0F0 0F1 0F2 0B0", "0F0 0F1 0B0 0F2"), "0B0"),
    ("lab02.t1", DEADLOCK, "0B0 1F3 2F2"),
    ("lab02.t1", ONE_F_ONE_B.replace(" 1F2", ""), "1B1"),
    ("lab02.t1", ONE_F_ONE_B.replace("2B3", "2B3 2B3"), "2B3"),
    ("lab02.t1", "0F0 0B0", "0B0"),
    ("lab02.t4", LINE, ""),
    ("lab02.t4", BROKEN[1], "1F3"),
    ("lab02.t4", LINE.replace("1F3 1B2", "1B2 1F3"), "1B2"),
    ("lab02.t4", LINE.replace("1B0 1F2 1B1 1F3", "1F2 1F3 1B0 1B1"), "0B0 1F3 2F3"),
]


@in_turn("key, answer, marked", ANSWERS)
def test_the_tasks_of_lab_2_draw_right_and_wrong_answers(key: str, answer: str, marked: str) -> None:
    feedback = check(key, answer)
    assert feedback.passed == (not marked)
    assert feedback.drawing is not None
    assert " ".join(map(str, feedback.drawing.marked)) == marked
    assert isinstance(feedback.drawing.figure(), Picture)


@in_turn("text", [answer for key, answer, marked in ANSWERS if key == "lab02.t1"])
def test_an_order_that_cannot_run_gets_the_sentences_of_the_error(text: str) -> None:
    feedback, error = check("lab02.t1", text), error_of(split_text(text))
    if error is not None:
        assert (feedback.messages, feedback.code) == ((str(error),), error.code)
        assert set(map(str, marked_by(error))) == set(re.findall(r"\[(\w+)\]", str(error)))


def test_feedback_loads_no_matplotlib_before_it_is_shown() -> None:
    program = f"import sys; from hybridlab.course.tasks import check; check('lab02.t1', {DEADLOCK!r}); print('matplotlib' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
