"""Plant bugs in the library, one at a time; the checks must find each of them.

Other programs for pipeline schedules had these bugs.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import checks
import numpy as np
import oracle
import pytest
from cases import in_turn, refusal
from oracle import Setting

from hybridlab import Costs, HybridLabError, Schedule, Timeline, build, formulas, simulate
from hybridlab.arrays import Floats
from hybridlab.costs import checking
from hybridlab.costs.checking import of_four_kinds
from hybridlab.schedule import B, F, I, W
from hybridlab.schedule.grid import rows_of
from hybridlab.schedules import forget, registry
from hybridlab.simulation import loops

SIZES = {
    "gpipe": (4, 6, 1),
    "1f1b": (4, 6, 1),
    "interleaved": (4, 8, 2),
    "hanayo": (4, 8, 2),
    "zb-h1": (4, 6, 1),
    "chimera": (4, 8, 1),
    "dualpipe-v": (4, 8, 2),
}
FEW = {"gpipe": (4, 2, 1), "1f1b": (4, 2, 1), "zb-h1": (4, 2, 1)}  # fewer microbatches than devices
SETTING = Setting((2.0, 3.0, 2.5, 2.0), (4.0, 5.0, 4.5, 4.0), (0.5, 0.25, 0.5, 0.375), 0.75, 0.5)


def timelines() -> Iterator[tuple[str, Timeline]]:
    """Simulate every schedule of the registry and check that it has the size asked for."""
    for sizes in (SIZES, FEW):
        for name, size in sizes.items():
            schedule = build(name, *size)
            checks.has_the_size_asked_for(schedule, *size)
            yield name, simulate(schedule, SETTING.costs())


def every_check() -> None:
    """Run all checks that the property tests run."""
    for _, timeline in timelines():
        for schedule_check in checks.SCHEDULE_CHECKS:
            schedule_check(timeline.schedule)
        for check in checks.TIMELINE_CHECKS:
            check(timeline, SETTING)


def memory_within_the_closed_form() -> None:
    """Run a short form of the tests of the closed forms."""
    for name, timeline in timelines():
        if name in ("gpipe", "1f1b", "zb-h1"):
            schedule = timeline.schedule
            for device, peak in enumerate(timeline.peak_activations.tolist()):
                assert peak == formulas.peak_activations(name, schedule.devices, schedule.microbatches, device)


def makespan_equal_to_the_closed_form() -> None:
    uniform = Costs(forward=2, backward=4, weight_share=0.5)
    for name, formula in {
        "zb-h1": formulas.zb_h1_makespan(4, 6, 2, 4, 2),
        "1f1b": formulas.one_f_one_b_makespan(4, 6, 2, 4),
    }.items():
        assert simulate(build(name, *SIZES[name]), uniform).makespan == pytest.approx(formula)


def only(check: Callable[..., None]) -> Callable[[], None]:
    """Return a function that runs one check of :mod:`checks` on every timeline."""

    def run() -> None:
        for _, timeline in timelines():
            check(*((timeline.schedule,) if check in checks.SCHEDULE_CHECKS else (timeline, SETTING)))

    return run


@pytest.fixture(autouse=True)
def nothing_built() -> Iterator[None]:
    """Build every schedule again: one that was kept from before knows nothing of a planted bug, and one with the bug must not stay."""
    forget()
    yield
    forget()


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Replace fields of a registered family."""

    def change(name: str, **fields: Any) -> None:
        monkeypatch.setitem(registry._FAMILIES, name, replace(registry._FAMILIES[name], **fields))

    return change


def caught(*checks: Callable[[], None]) -> None:
    for check in checks:
        with pytest.raises((AssertionError, HybridLabError)):
            check()


def test_nothing_is_found_where_nothing_is_planted() -> None:
    every_check()
    memory_within_the_closed_form()
    makespan_equal_to_the_closed_form()


def test_lost_weight_gradient_in_the_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: a full backward takes only the time of its input gradient."""
    whole = of_four_kinds

    def lost(*given: Any) -> Any:
        forward, _, input_gradient, weight_gradient = whole(*given)
        return forward, input_gradient, input_gradient, weight_gradient

    monkeypatch.setattr(checking, "of_four_kinds", lost)
    caught(
        only(checks.work_is_conserved),
        only(checks.every_operation_takes_its_time),
        only(checks.equals_the_longest_paths),
    )
    caught(only(checks.makespan_covers_the_busiest_device), makespan_equal_to_the_closed_form)


def test_lost_weight_gradient_in_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: in a split backward, the last weight gradients never run."""

    def forgetful(slots: Any, *placement: Any) -> Any:
        columns = rows_of(slots, *placement)
        kept = ~((columns["kind"] == W) & (columns["microbatch"] == slots.shape[2] - 1))
        place = np.append(np.cumsum(kept) - 1, -1)
        pairs = place[columns.pop("pairs")]
        return {name: column[kept] for name, column in columns.items()} | {"source": place[columns["source"][kept]], "pairs": pairs}

    monkeypatch.setattr(sys.modules[Schedule.__module__], "rows_of", forgetful)
    caught(only(checks.work_is_conserved), only(checks.runs_everything_once))


def test_a_lost_weight_gradient_is_missed_in_written_orders_too() -> None:
    orders = [[op for op in order if str(op) != "2W3"] for order in build("zb-h1", 4, 6).orders]
    with refusal("missing-weight-gradient", "stage 2", "microbatch 3"):
        Schedule("forgetful", orders)


def test_ignored_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: a message between two devices takes no time."""
    monkeypatch.setattr(Schedule, "crosses", property(lambda self: np.zeros(self.kind.size, dtype=bool)))
    caught(only(checks.nothing_starts_before_its_input), only(checks.equals_the_longest_paths))


def test_latency_on_the_way_forth_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: activations take time to travel, but gradients do not."""
    monkeypatch.setattr(Schedule, "crosses", property(lambda self: (self.kind == F) & (self.stage > 0)))
    caught(only(checks.nothing_starts_before_its_input), only(checks.equals_the_longest_paths))


def unclamped(devices: int, microbatches: int, chunks: int) -> Any:
    """Return 1F1B written as text, with a warm-up that does not look at the number of microbatches.

    Each device runs the warm-up, then pairs of a forward and a backward, then the remaining backwards.
    """
    most = max(microbatches, devices - 1)
    slots = np.full((2, devices, most), -1)
    for device in range(devices):
        warmup = devices - 1 - device
        order = [(0, microbatch) for microbatch in range(warmup)]
        for microbatch in range(microbatches - warmup):
            order += [(0, warmup + microbatch), (1, microbatch)]
        order += [(1, microbatch) for microbatch in range(max(0, microbatches - warmup), microbatches)]
        for slot, (kind, microbatch) in enumerate(order):
            slots[kind, device, microbatch] = slot
    return slots


def test_unclamped_warm_up(plant: Callable[..., None]) -> None:
    """The bug: a warm-up has K-1-d forwards although there are fewer microbatches."""
    rule = registry._FAMILIES["1f1b"].rule
    right, wrong = (Schedule.from_slots("1f1b", make(4, 6, 1), range(4)) for make in (rule, unclamped))
    assert wrong.orders == right.orders, "where there are enough microbatches the bug does not show"
    plant("1f1b", rule=unclamped)
    caught(every_check)


def test_warm_up_one_too_long(plant: Callable[..., None]) -> None:
    """The bug: the warm-up has K-d forwards, which is as fast, but holds one more activation."""
    rule = registry._FAMILIES["1f1b"].rule

    def eager(devices: int, microbatches: int, chunks: int) -> Any:
        forward, backward = rule(devices, microbatches, chunks)
        return np.stack([forward, backward + 2])

    plant("1f1b", rule=eager)
    caught(memory_within_the_closed_form)


def test_late_weight_gradient(plant: Callable[..., None]) -> None:
    """The bug: weight gradients run later than the rule says; nothing waits for them, but activations are held longer."""
    rule = registry._FAMILIES["zb-h1"].rule
    for late in (4, 10**4):  # one microbatch later, and all at the end

        def lazy(devices: int, microbatches: int, chunks: int, late: int = late) -> Any:
            slots = rule(devices, microbatches, chunks)
            slots[-1] += late
            return slots

        plant("zb-h1", rule=lazy)
        caught(memory_within_the_closed_form)


def test_activation_released_at_the_input_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: memory is counted as if the weight gradient did not need its activation."""

    def early(self: Timeline) -> Floats:
        kind = self.schedule.kind
        frees = (kind == B) | (kind == I)
        held: Floats = (np.cumsum(kind == F) - np.cumsum(frees) + frees) / self.schedule.chunks
        return held

    monkeypatch.setattr(Timeline, "activations", property(early))
    caught(only(checks.peaks_equal_a_walk_through_the_order), only(checks.peaks_equal_a_sweep_through_time))


@in_turn("name, placement", [("interleaved", "folded"), ("hanayo", "looped")])
def test_chunks_on_the_wrong_device(monkeypatch: pytest.MonkeyPatch, name: str, placement: str) -> None:
    """The bug: interleaved chunks are placed as folded ones, and folded chunks as interleaved ones."""
    with monkeypatch.context() as planted:
        planted.setitem(registry._FAMILIES, name, replace(registry._FAMILIES[name], placement=placement))
        caught(only(checks.stages_are_where_they_belong))


def test_backward_through_the_chunks_in_forward_order(plant: Callable[..., None]) -> None:
    rule = registry._FAMILIES["interleaved"].rule

    def wrong_way(devices: int, microbatches: int, chunks: int) -> Any:
        forward, backward = rule(devices, microbatches, chunks).reshape(2, chunks, devices, microbatches)
        return np.stack([forward, backward[::-1]]).reshape(2, chunks * devices, microbatches)

    plant("interleaved", rule=wrong_way)
    caught(only(checks.slots_prove_that_it_can_run))


def test_a_chunk_that_takes_the_time_of_the_whole_device(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = of_four_kinds
    monkeypatch.setattr(checking, "of_four_kinds", lambda *given: whole(*given[:-1], 1))
    caught(only(checks.work_is_conserved), only(checks.every_operation_takes_its_time))


def test_a_message_to_the_same_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: latency is counted from stage to stage, even where both stages are on one device (at Hanayo's turn)."""
    monkeypatch.setattr(Schedule, "crosses", property(lambda self: (self.kind != W) & (self.source >= 0)))
    caught(only(checks.equals_the_longest_paths))


def test_overlapping_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: a device starts an operation as soon as its input is there, even while it runs another one."""
    by_slot = loops._by_slot

    def overlapping(*schedules: Any) -> Any:
        rows, begins, source, before, pairs = by_slot(*schedules)
        return rows, begins, source, np.full_like(before, -1), pairs

    monkeypatch.setattr(loops, "_by_slot", overlapping)
    monkeypatch.setattr(Schedule, "before", property(lambda self: np.full(self.kind.size, -1)))
    caught(only(checks.a_device_runs_one_operation_at_a_time), only(checks.equals_the_longest_paths))
    caught(only(checks.makespan_covers_the_busiest_device))


def test_pairs_that_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: in an overlapped pair, each operation starts when its own input is there and does not wait for the other's."""
    by_slot = loops._by_slot

    def apart(*schedules: Any) -> Any:
        *rest, pairs = by_slot(*schedules)
        return *rest, pairs[:0]

    monkeypatch.setattr(loops, "_by_slot", apart)
    caught(only(checks.a_device_runs_one_operation_at_a_time), only(checks.equals_the_longest_paths))


def test_pairs_that_take_no_account_of_the_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_after_the_other(self: Costs, forward: Floats, backward: Floats) -> Floats:
        both: Floats = forward + backward
        return both

    monkeypatch.setattr(Costs, "together", one_after_the_other)
    caught(only(checks.every_operation_takes_its_time), only(checks.work_is_conserved))


def test_the_oracle_itself_finds_an_order_that_cannot_run() -> None:
    assert oracle.can_run(oracle.nodes(build("zb-h1", 3, 4)))
    assert not oracle.can_run([[("F", 0, 0), ("B", 0, 0), ("F", 0, 1), ("B", 0, 1)], [("F", 1, 1), ("B", 1, 1), ("F", 1, 0), ("B", 1, 0)]])
