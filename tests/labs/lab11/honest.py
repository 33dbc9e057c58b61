"""The build of lab 11 under each of its twists, written from the clause of the twist."""

from collections.abc import Callable


def _most(
    held_by: Callable[[int], int] = lambda stage: 0, last_first: bool = False, each: int = 1
) -> Callable[[list[str], float], list[float]]:
    """Return the function for what a stage holds all the time, the order of the list, and what the whole activations count."""

    def recomputed_peaks(orders: list[str], kept: float) -> list[float]:
        found = []
        for order in reversed(orders) if last_first else orders:
            kinds = [next(letter for letter in op if letter in "FBIW") for op in order.split()]
            tenths = whole = 0
            most = 0.0
            for kind in kinds:
                if kind == "F":
                    tenths += 1
                elif kind in "BI":
                    tenths, whole = tenths - 1, whole + 1
                most = max(most, tenths * kept + whole)
                if kind in "BW":
                    whole -= 1
            stage = int(order.split(kinds[0])[0])
            found.append(each * (held_by(stage) + most))
        return found

    return recomputed_peaks


def _free(last_first: bool) -> Callable[[list[str], float], list[float]]:
    def recomputed_peaks(orders: list[str], kept: float) -> list[float]:
        return [16 - most for most in _most(last_first=last_first)(orders, kept)]

    return recomputed_peaks


SOLUTIONS = {
    ("lab11.t4", "one-held"): _most(lambda stage: 1),
    ("lab11.t4", "one-held-last-line-first"): _most(lambda stage: 1, last_first=True),
    ("lab11.t4", "two-held"): _most(lambda stage: 2),
    ("lab11.t4", "two-held-last-line-first"): _most(lambda stage: 2, last_first=True),
    ("lab11.t4", "as-many-held-as-the-stage"): _most(lambda stage: stage),
    ("lab11.t4", "as-many-held-as-the-stage-last-line-first"): _most(lambda stage: stage, last_first=True),
    ("lab11.t4", "places-left"): _free(last_first=False),
    ("lab11.t4", "places-left-last-line-first"): _free(last_first=True),
    ("lab11.t4", "gigabytes"): _most(each=3),
    ("lab11.t4", "gigabytes-last-line-first"): _most(last_first=True, each=3),
}
