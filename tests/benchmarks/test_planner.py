"""Measure predictions per second, and the time of a search.

The goals are 10,000 predictions per second, and 10 s for a search with 3,072 GPUs and 1 trillion parameters.
"""

import time
from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from hybridlab import A100_80GB, Plan, Transformer, predict, search
from hybridlab.planner import messages
from hybridlab.planner.search import plans

TRILLION = Transformer(layers=128, hidden=25600, heads=160)
SECTION = "planner"


def forget() -> None:
    """Forget the times of messages that one prediction keeps for the next."""
    messages.ring_seconds.cache_clear()
    messages.message_seconds.cache_clear()


def some(benchmark: BenchmarkFixture) -> list[Plan]:
    """Return plans from all parts of the search, or only a few if nothing is measured."""
    every = list(plans(TRILLION, 3072, A100_80GB, 3072))
    return every[:: len(every) // (20 if benchmark.disabled else 1000)]


@pytest.mark.parametrize("forgets", ["nothing", "all before 1,000", "all before each"])
def test_predictions(benchmark: BenchmarkFixture, tell: Callable[[str, str], None], forgets: str) -> None:
    """The predictions are for one model on one cluster, as in a search.

    Most plans then send messages that another plan sends, too.
    """
    chosen = some(benchmark)

    def run() -> None:
        if forgets == "all before 1,000":
            forget()
        for plan in chosen:
            if forgets == "all before each":
                forget()
            predict(TRILLION, plan, A100_80GB, must_fit=False)

    benchmark.pedantic(run, rounds=1 if benchmark.disabled else 9, warmup_rounds=1)  # type: ignore[no-untyped-call]
    if benchmark.stats is not None:
        best, median = (len(chosen) / seconds for seconds in (benchmark.stats.stats.min, benchmark.stats.stats.median))
        tell(
            SECTION,
            f"times of messages forgotten: {forgets:<17} {best:>8,.0f} predictions/s   median {median:,.0f}   at least 10,000 wanted",
        )


def test_the_search_of_a_trillion_on_3072_gpus(benchmark: BenchmarkFixture, tell: Callable[[str, str], None]) -> None:
    model = Transformer(8, 1024, 16) if benchmark.disabled else TRILLION
    begin = time.perf_counter()
    found = benchmark.pedantic(lambda: (forget(), search(model, 3072, A100_80GB))[1], rounds=1)  # type: ignore[no-untyped-call]
    tell(SECTION, f"{found.tried:,} plans tried in {time.perf_counter() - begin:.2f} s, at most 10 wanted: {found}")
