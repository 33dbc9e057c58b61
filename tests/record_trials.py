"""Measure the steps of the page on trust again, and store them beside the library: `python tests/record_trials.py mpi torch`.

It takes about two minutes. The machine should do nothing else: the load and the stolen time are stored as well. `--show` prints the
results and stores nothing.
"""

import json
import sys

from hybridlab.course.comparisons.trials import NAMES, STORED, run_trials


def main(arguments: list[str]) -> None:
    engines = [name for name in arguments if name != "--show"] or list(NAMES)
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    for engine in engines:
        trials = run_trials(engine)
        for name, trial in trials.items():
            print(f"{name}, {trial}")
        stored[engine] = {name: trial.to_dict() for name, trial in trials.items()}
    if "--show" not in arguments:
        in_order = {engine: stored[engine] for engine in NAMES if engine in stored}
        STORED.write_text(json.dumps(in_order, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
