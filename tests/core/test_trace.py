"""Test traces of overlapped pairs: both slices are visible, one below the other, and nothing else on a track overlaps."""

from itertools import groupby, pairwise
from typing import Any

from cases import in_turn

from hybridlab import Costs, build, simulate

COSTS = Costs(forward=1, backward=2, p2p=0.3, overlap=0.7)


def slices_of(name: str) -> list[list[dict[str, Any]]]:
    """Return the slices of each device's track, in the order of the file."""
    events = simulate(build(name, 4, 8), COSTS).to_chrome_trace()["traceEvents"]
    return [list(each) for _, each in groupby((event for event in events if event["ph"] == "X"), key=lambda event: event["tid"])]


@in_turn("name", ["dualpipe", "dualpipe-v"])
def test_a_pair_is_two_slices_of_one_length_the_forward_first(name: str) -> None:
    """If two slices begin and end together, a viewer draws the second below the first, so that both are visible."""
    pairs = 0
    for track in slices_of(name):
        for one, other in pairwise(track):
            if other["ts"] >= one["ts"] + one["dur"] - 1e-6:
                continue
            assert (one["cat"], other["cat"]) == ("F", "B")
            assert (one["ts"], one["dur"]) == (other["ts"], other["dur"])
            pairs += 1
    assert pairs == str(build(name, 4, 8)).count("(") > 0


@in_turn("name", ["dualpipe", "dualpipe-v", "chimera"])
def test_the_counter_of_a_device_peaks_where_the_timeline_does_and_ends_at_none(name: str) -> None:
    timeline = simulate(build(name, 4, 8), COSTS)
    counters = [event for event in timeline.to_chrome_trace()["traceEvents"] if event["ph"] == "C"]
    for device, peak in enumerate(timeline.peak_activations.tolist()):
        held = [event for event in counters if event["name"] == f"activations of device {device}"]
        assert max(event["args"]["microbatches"] for event in held) == peak
        assert max(held, key=lambda event: event["ts"])["args"]["microbatches"] == 0
