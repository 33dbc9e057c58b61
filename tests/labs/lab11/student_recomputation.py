"""Programs for the build `recomputed_peaks(orders, kept)` of lab 11, as students write them: a right one and typical wrong ones."""

import re
from collections.abc import Callable

from hybridlab import Schedule, recomputed_peak

Program = Callable[[list[str], float], list[float]]


def right_peaks(orders: list[str], kept: float) -> list[float]:
    """Go through each order twice at a time: the microbatches that keep a share, and those that are whole."""
    found = []
    for order in orders:
        small: set[str] = set()
        whole: set[str] = set()
        most = 0.0
        for op in order.split():
            place = next(place for place, letter in enumerate(op) if letter in "FBIW")
            kind, microbatch = op[place], op[place + 1 :]
            if kind == "F":
                small.add(microbatch)
            elif kind in "BI":
                small.remove(microbatch)
                whole.add(microbatch)
            most = max(most, len(small) * kept + len(whole))
            if kind in "BW":
                whole.remove(microbatch)
        found.append(most)
    return found


def changed_by(step: Callable[[str, float], tuple[float, float]]) -> Program:
    """A program that adds a number when an operation of a kind begins, and another one when it ends."""

    def recomputed_peaks(orders: list[str], kept: float) -> list[float]:
        found = []
        for order in orders:
            held = most = 0.0
            for op in order.split():
                begins, ends = step(next(letter for letter in op if letter.isalpha()), kept)
                most = max(most, held + begins)
                held += begins + ends
            found.append(most)
        return found

    return recomputed_peaks


keeps_all = changed_by(lambda kind, kept: (1, 0) if kind == "F" else (0, 0) if kind == "I" else (0, -1))
never_whole = changed_by(lambda kind, kept: (kept, 0) if kind == "F" else (0, 0) if kind == "I" else (0, -kept))
throws_away_late = changed_by(lambda kind, kept: {"F": (1, kept - 1), "I": (1 - kept, 0), "B": (1 - kept, -1), "W": (0, -1)}[kind])
input_gradient_frees = changed_by(lambda kind, kept: {"F": (kept, 0), "W": (0, 0)}.get(kind, (1 - kept, -1)))
thrown_away_between = changed_by(lambda kind, kept: {"F": (kept, 0), "I": (1 - kept, kept - 1)}.get(kind, (1 - kept, -1)))
computes_again_for_w = changed_by(lambda kind, kept: {"F": (kept, 0), "I": (0, 0)}.get(kind, (1 - kept, -1)))
full_backwards_alone = changed_by(lambda kind, kept: {"F": (kept, 0), "B": (1 - kept, -1)}.get(kind, (0, 0)))
counts_after_the_release = changed_by(lambda kind, kept: (0, {"F": kept, "I": 1 - kept, "B": -kept, "W": -1}[kind]))
adds_a_whole_one = changed_by(lambda kind, kept: {"F": (kept, 0), "I": (1, 0), "B": (1, -1 - kept), "W": (0, -1 - kept)}[kind])


def read_at(place: int) -> Program:
    """A program that takes the letter of every operation at one place, and passes over an operation that has a digit there."""
    steps = {"F": (0, 1, 0), "I": (1, -1, 0), "B": (1, -1, -1), "W": (0, 0, -1)}  # whole and kept shares added; whole ones freed

    def recomputed_peaks(orders: list[str], kept: float) -> list[float]:
        found = []
        for order in orders:
            held = most = 0.0
            for op in order.split():
                whole, share, freed = steps.get(op[place], (0, 0, 0))
                held += whole + share * kept
                most = max(most, held)
                held += freed
            found.append(most)
        return found

    return recomputed_peaks


def by_formula(orders: list[str], kept: float) -> list[float]:
    return [1 + (peak - 1) * kept for peak in right_peaks(orders, 1)]


def a_half(orders: list[str], kept: float) -> list[float]:
    return [peak / 2 for peak in right_peaks(orders, kept)]


def of_all_devices(orders: list[str], kept: float) -> list[float]:
    return len(orders) * [max(right_peaks(orders, kept))]


def from_the_last(orders: list[str], kept: float) -> list[float]:
    return right_peaks(orders, kept)[::-1]


def largest_first(orders: list[str], kept: float) -> list[float]:
    return sorted(right_peaks(orders, kept), reverse=True)


def always_a_tenth(orders: list[str], kept: float) -> list[float]:
    return right_peaks(orders, 0.1)


def at_the_end(orders: list[str], kept: float) -> list[float]:
    return [0.0] * len(orders)


def examples_of_the_text(orders: list[str], kept: float) -> list[float]:
    return [2.0] if "I" in orders[0] else [1.2]


def first_line_alone(orders: list[str], kept: float) -> list[float]:
    return right_peaks(orders, kept)[:1]


def one_number(orders: list[str], kept: float) -> float:
    return max(right_peaks(orders, kept))


def not_numbers(orders: list[str], kept: float) -> list[float]:
    return [float("nan")] * len(orders)


def without_the_share(orders: list[str]) -> list[float]:
    return right_peaks(orders, 0.1)


def asks_the_library(orders: list[str], kept: float) -> list[float]:
    return [float(recomputed_peak(Schedule.parse(re.sub(r"\d+([FBIW])", r"0\1", order)), kept)[0]) for order in orders]
