"""The coding task ('build') of lab 11, ``recomputed_peaks(orders, kept)``.

This file has its cases and its known mistakes. The orders and the changes of the task ('twists') are those of lab 3.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import chain, cycle, islice

import numpy as np

from hybridlab.course.checking.builds import Case, KnownMistake
from hybridlab.course.checking.twists import Example
from hybridlab.course.labs.lab03 import peaks
from hybridlab.schedule import Schedule
from hybridlab.step.recomputation import recomputed_peak

FORWARD_BESIDE_A_WHOLE = "0F0 0I0 0F1 0W0 0I1 0W1"
Count = Callable[[list[str], float], list[float]]
SHARES = (0.1, 0.25, 0.0, 0.5, 0.1, 1.0)  # values of ``kept``: the share of its activations that a forward leaves in memory
FIXED = 18  # the first cases have the shares of SHARES, and all later cases have random ones


def orders_and_shares(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the orders of lab 3's build, each with a share ``kept`` of the activations that stays in memory after a forward."""
    drawn = (int(rng.integers(1, 100)) / 100 for _ in iter(int, 1))
    for case, kept in zip(peaks.orders_to_count(rng), chain(islice(cycle(SHARES), FIXED), drawn), strict=False):
        yield Case((*case.arguments, kept), f"{case.words}, kept = {kept:g}")
    # Here a forward runs while another microbatch has its whole activations, and this forward is the peak.
    words = f"the order {FORWARD_BESIDE_A_WHOLE}, kept = 0.25"
    yield Case(([FORWARD_BESIDE_A_WHOLE], 0.25), words)


@cache
def peak_of_line(line: str, kept: float) -> float:
    """Return the peak of the device that runs this line. The peak depends on the order of this device alone."""
    return float(recomputed_peak(Schedule.parse(re.sub(r"\d+([FBIW])", r"0\1", line)), kept)[0])


def _peaks(orders: list[str], kept: float) -> list[float]:
    return [peak_of_line(line, kept) for line in orders]


def _walk(begins: Mapping[str, tuple[float, float]], ends: Mapping[str, tuple[float, float]]) -> Count:
    """Return a function that goes along each line and counts the peak of the activations in memory.

    For each kind of operation, ``begins`` says how much an operation adds when it begins, and ``ends`` how much it frees when it ends. A
    pair (a, b) stands for a + b * ``kept`` activations of a microbatch.
    """

    def count(orders: list[str], kept: float) -> list[float]:
        found = []
        for line in orders:
            held = most = 0.0
            for kind in re.findall("[FBIW]", line):
                (added, share), (taken, taken_share) = begins.get(kind, (0, 0)), ends.get(kind, (0, 0))
                held += added + share * kept
                most = max(most, held)
                held -= taken + taken_share * kept
            found.append(most)
        return found

    return count


WHOLE, KEPT, REST = (1, 0), (0, 1), (1, -1)  # all activations of a microbatch; the share that stays; the share that is computed again

_counted = _walk({"F": KEPT, "B": REST, "I": REST}, {"B": WHOLE, "W": WHOLE})  # the right count, also for a line that lacks operations
IN_LAB_3 = {mistake.code: mistake for mistake in peaks.MISTAKES}


def _as_in_lab_3(code: str, result: Count) -> KnownMistake:
    """Return a known mistake with the code and the sentences of lab 3's build, and with the wrong program ``result``."""
    return replace(IN_LAB_3[code], result=result)


MISTAKES = (
    KnownMistake(
        "nothing-recomputed",
        "this counts the peak without recomputation: after its forward a microbatch keeps only the share `kept`",
        _walk({"F": WHOLE}, {"B": WHOLE, "W": WHOLE}),
    ),
    KnownMistake(
        "counted-after-the-release",
        "this counts what a device holds after each operation: count before B or W frees memory, because both need the whole activations",
        _walk({"F": KEPT, "I": REST}, {"B": KEPT, "W": WHOLE}),
    ),
    KnownMistake(
        "never-whole",
        "a backward needs the whole activations: from the beginning of B or I a device holds all of them, not the share `kept`",
        _walk({"F": KEPT}, {"B": KEPT, "W": KEPT}),
    ),
    KnownMistake(
        "whole-in-the-forward",
        "this counts the whole activations while a forward runs: in this task a forward adds the share `kept` alone",
        _walk({"F": WHOLE, "B": REST, "I": REST}, {"F": REST, "B": WHOLE, "W": WHOLE}),
    ),
    KnownMistake(
        "frees-at-input-gradient",
        "the input gradient I frees nothing: the weight gradient W needs the whole activations too, and W frees them",
        _walk({"F": KEPT, "B": REST, "I": REST}, {"B": WHOLE, "I": WHOLE}),
    ),
    KnownMistake(
        "ignores-split-backwards",
        "this ignores I and W: where the backward is split, I computes the activations again and W frees them",
        _walk({"F": KEPT, "B": REST}, {"B": WHOLE}),
    ),
    KnownMistake(
        "kept-and-whole",
        "this adds whole activations when a backward begins: the share `kept` is already in memory, so only the share 1 - kept is added",
        _walk({"F": KEPT, "B": WHOLE, "I": WHOLE}, {"B": (1, 1), "W": (1, 1)}),
    ),
    KnownMistake(
        "one-whole-at-most",
        "this is (p - 1) kept + 1, where only one microbatch has whole activations: after I the activations stay whole until the end of "
        "W, so several microbatches can have whole activations at the same time",
        lambda orders, kept: [(most - 1) * kept + 1 for most in _peaks(orders, 1.0)],
    ),
    _as_in_lab_3("one-peak-for-all", lambda orders, kept: [max(_peaks(orders, kept))] * len(orders)),
    _as_in_lab_3("reversed", lambda orders, kept: _peaks(orders, kept)[::-1]),
    _as_in_lab_3("sorted", lambda orders, kept: sorted(_peaks(orders, kept), reverse=True)),
    KnownMistake(
        "tenth-always",
        "this is right only for a share of a tenth: use the argument `kept`",
        lambda orders, kept: _peaks(orders, 0.1),
    ),
    _as_in_lab_3("one-digit", lambda orders, kept: [0 if re.match(r"\d\d", line) else peak_of_line(line, kept) for line in orders]),
    _as_in_lab_3("one-digit-microbatch", lambda orders, kept: _counted([re.sub(r"\d+[FBIW]\d\d+", "", line) for line in orders], kept)),
    _as_in_lab_3("held-at-the-end", lambda orders, kept: [0.0 for _ in orders]),
)

EXAMPLES = (
    Example((["0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"], 0.25), [1.5, 1.0]),
    Example((["2F0 2I0 2F1 2I1 2W0 2W1"], 0.25), [2.0]),
)
