"""Measure sweeps with one executor: ``python sweep_program.py serial|processes|mpi|dask STARTED ROUNDS``.

The program prints three numbers as JSON: the seconds from STARTED to the first result, the seconds of a job that has almost nothing to
do, and the seconds of a large sweep.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from sweep_worker import workers

from hybridlab import sweep
from hybridlab.sweep import jobs

SMALL_JOBS = 500
SMALL = {"devices": 1, "microbatches": 1, "load": range(SMALL_JOBS), "forward": lambda load: 1 + load, "backward": 2}
LARGE = {
    "devices": [16, 32],
    "microbatches": [128, 256],
    "forward": [1 + step / 1000 for step in range(1000)],
    "backward": lambda forward: 2 * forward,
    "p2p": [0, 0.1],
}


def seconds(run: Callable[[], Any], rounds: int) -> float:
    """Return the time of the quickest run."""
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return min(times)


def main(kind: str, started: float, rounds: int) -> None:
    """Measure with an executor of this kind and two workers."""
    most = jobs.CELLS
    with workers(kind) as start, start(2) as executor:

        def run(grid: dict[str, Any], cells: int) -> None:
            jobs.CELLS = cells
            sweep(["1f1b", "zb-h1"] if cells > 1 else "1f1b", grid, executor=executor, progress=False)

        run({**SMALL, "load": range(2)}, 1)
        begun = time.time() - started
        small = seconds(lambda: run(SMALL, 1), rounds) / SMALL_JOBS
        large = seconds(lambda: run(LARGE, most), rounds) if rounds > 1 else 0.0
    print(json.dumps([begun, small, large]))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
