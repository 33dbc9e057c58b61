"""The build of lab 3 under each of its twists, written from the clause of the twist."""

import re
from collections.abc import Callable


def _peaks(held_by: Callable[[int], int] = lambda stage: 0, last_first: bool = False, each: int = 1) -> Callable[[list[str]], list[int]]:
    """Return the function for what a stage holds all the time, the order of the list, and what an activation counts."""

    def peaks(orders: list[str]) -> list[int]:
        found = []
        for line in reversed(orders) if last_first else orders:
            held = most = each * held_by(int(re.split("[FBIW]", line)[0]))
            for kind in re.findall("[FBW]", line):
                held += each if kind == "F" else -each
                most = max(most, held)
            found.append(most)
        return found

    return peaks


def _places_left(last_first: bool) -> Callable[[list[str]], list[int]]:
    def peaks(orders: list[str]) -> list[int]:
        found = []
        for line in orders:
            free = fewest = 16
            for kind in re.findall("[FBW]", line):
                free += -1 if kind == "F" else 1
                fewest = min(fewest, free)
            found.insert(0 if last_first else len(found), fewest)
        return found

    return peaks


SOLUTIONS = {
    ("lab03.t3", "one-held"): _peaks(lambda stage: 1),
    ("lab03.t3", "one-held-last-line-first"): _peaks(lambda stage: 1, last_first=True),
    ("lab03.t3", "two-held"): _peaks(lambda stage: 2),
    ("lab03.t3", "two-held-last-line-first"): _peaks(lambda stage: 2, last_first=True),
    ("lab03.t3", "as-many-held-as-the-stage"): _peaks(lambda stage: stage),
    ("lab03.t3", "as-many-held-as-the-stage-last-line-first"): _peaks(lambda stage: stage, last_first=True),
    ("lab03.t3", "places-left"): _places_left(last_first=False),
    ("lab03.t3", "places-left-last-line-first"): _places_left(last_first=True),
    ("lab03.t3", "gigabytes"): _peaks(each=3),
    ("lab03.t3", "gigabytes-last-line-first"): _peaks(each=3, last_first=True),
}
