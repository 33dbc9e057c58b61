"""The build of lab 10 under each of its twists, as a student writes it from the clause."""

from collections.abc import Callable


def _drop(pair: float, round_trip: float) -> int:
    """The least step that hides a round trip: as many pairs as fit, and one more for the rest."""
    drop = 1
    while (drop - 1) * pair < round_trip:
        drop += 1
    return drop


def _eager(
    pair: Callable[[float, float], float] = lambda forward, backward: forward + backward,
    round_trip: Callable[[float], float] = lambda latency: 2 * latency,
    returned: Callable[[int, int], int] = lambda warmup, microbatches: warmup,
    last_first: bool = False,
) -> Callable[..., list[int]]:
    def eager(devices: int, microbatches: int, forward: float, backward: float, latency: float) -> list[int]:
        drop = _drop(pair(forward, backward), round_trip(latency))
        found = [returned(min(drop * after, microbatches), microbatches) for after in range(devices)]
        return found if last_first else found[::-1]

    return eager


def _four_halves(latency: float) -> float:
    return 4 * latency


def _both(forward: float, backward: float) -> float:
    return backward


def _peak(warmup: int, microbatches: int) -> int:
    return min(warmup + 1, microbatches)


def _left(warmup: int, microbatches: int) -> int:
    return microbatches - warmup


SOLUTIONS = {
    ("lab10.t4", "half"): _eager(round_trip=_four_halves),
    ("lab10.t4", "pair"): _eager(pair=_both),
    ("lab10.t4", "peaks"): _eager(returned=_peak),
    ("lab10.t4", "pairs-left"): _eager(returned=_left),
    ("lab10.t4", "half-and-last-device-first"): _eager(round_trip=_four_halves, last_first=True),
    ("lab10.t4", "pair-and-last-device-first"): _eager(pair=_both, last_first=True),
    ("lab10.t4", "half-and-peaks"): _eager(round_trip=_four_halves, returned=_peak),
    ("lab10.t4", "pair-and-pairs-left"): _eager(pair=_both, returned=_left),
    ("lab10.t4", "peaks-and-last-device-first"): _eager(returned=_peak, last_first=True),
}
