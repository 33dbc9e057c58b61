"""Run the two published programs as they were printed; their text is stored outside the repository, beside it.

`python tests/outside/published_programs.py` writes what the first one computes at some settings into `tests/data/published_runs.json`.

In the documents, a page break moves the lines below it to the left. Each number in ``COLUMNS`` is the original column of the line that
follows such a break. The lines below it are moved by the same distance.
"""

import json
from typing import Any

import numpy as np
from beside import DATA, SOURCES

FILE = DATA / "published_runs.json"
# stages, replicas, microbatches, numbers of a chunk; seed; mode; initial weight
PUBLISHED = (3, 4, 6, 30)
SETTINGS: list[tuple[tuple[int, ...], int, str, float]] = [
    *((PUBLISHED, seed, mode, 1) for seed in (0, 7, 9400) for mode in ("INT8", "FP16")),
    *((PUBLISHED, seed, "INT8", 1) for seed in (1, 2, 3, 9, 10, 11)),
    *((PUBLISHED, 9400, "INT8", weight) for weight in (-1, 2)),
    *((PUBLISHED, 5, "FP16", weight) for weight in (-3, 0, 0.01, 0.5)),
    ((1, 1, 1, 1), 0, "INT8", 1),
    ((4, 3, 2, 1), 0, "FP16", 1),
    ((2, 2, 5, 3), 2**32 - 1, "INT8", 1),
    ((3, 1, 4, 6), 3, "FP16", 0.01),
    ((1, 4, 3, 2), 4, "INT8", -0.25),
    ((4, 4, 1, 5), 6, "INT8", 0),
]

COLUMNS = {
    "def ": 4,
    "for dp in": 8,
    "for step in range(D": 8,
    "step_events.append": 16,
    "target_idx": 16,
    "final =": 8,
    'print("\\n=====': 8,
}


def text_of(document: str) -> str:
    """Return the program in the document, with every line at its right indentation."""
    document = (SOURCES / document).read_text()
    body = document[document.index("import numpy") : document.index("if __name__")]
    above, name, below = body.partition("class HybridSimulator:")
    lines, moved = [above.replace("```", "") + name], 0
    for line in below.replace("```", "").splitlines():
        bare = line.lstrip()
        column = 4 if bare.rstrip() == "# -----" else next((to for start, to in COLUMNS.items() if bare.startswith(start)), None)
        if column is not None:
            moved = column - (len(line) - len(bare))
        bare = 'print("")' if bare.count('"') == 1 else bare  # the page break cut this string into two lines
        lines.append(" " * (len(line) - len(line.lstrip()) + moved) + bare)
    return "\n".join(lines)


def run(document: str, seed: int, mode: str = "INT8", mend: bool = False, weight: float = 1.0, **sizes: int) -> tuple[Any, str]:
    """Run the program, and return its simulator and what it printed.

    ``mend`` starts the all-gather one chunk later; ``weight`` is the value of all weights at the start.
    """
    text = text_of(document)
    assert text.count("self.weight = np.ones(") == 1
    text = text.replace("self.weight = np.ones(", f"self.weight = np.float32({weight}) * np.ones(")
    if mend:
        at = text.lower().index("all-gather")
        gather = text[at:].replace("chunk_idx = (i - step)", "chunk_idx = (i + 1 - step)", 1)
        text = text[:at] + gather.replace("target_idx = (dst - step - 1)", "target_idx = (dst - step)", 1)
    printed: list[str] = []
    names: dict[str, Any] = {"__name__": "published", "print": lambda *words: printed.append(" ".join(map(str, words)))}
    exec(compile(text, document, "exec"), names)  # noqa: S102 - the oracle is a program
    names |= {"COMM_MODE": mode} | sizes
    state = np.random.get_state()  # noqa: NPY002 - the program draws from numpy's global generator
    try:
        simulator = names["HybridSimulator"]()
        simulator.accuracy_before = simulator.evaluate_accuracy() if "evaluate_accuracy" in text else None  # it sets a seed of its own
        np.random.seed(seed)  # noqa: NPY002
        simulator.run()
    finally:
        np.random.set_state(state)  # noqa: NPY002
    return simulator, "\n".join(printed)


def apart(simulator: Any) -> list[float]:
    """Return for each stage the largest distance between the weights of replica 0 and those of another replica."""
    groups = ([device.weight for device in group] for group in simulator.stage_groups.values())
    return [max([0.0, *(float(np.linalg.norm(first - each)) for each in others)]) for first, *others in groups]


def timeline(simulator: Any) -> list[str]:
    """Return the step grid, one line a step."""
    return [" ".join(event for _, event in row) for row in simulator.step_matrix]


def figures(size: tuple[int, ...], seed: int, mode: str, weight: float) -> dict[str, Any]:
    """Return what the first program computes at a setting."""
    stages, replicas, microbatches, width = size
    theirs, printed = run(
        "hybrid-simulator.txt", seed, mode, weight=weight, K=stages, D=replicas, M=microbatches, GRAD_SIZE=replicas * width
    )
    accuracy = float(theirs.evaluate_accuracy())
    assert f"Total Communication Bytes: {theirs.total_comm_bytes()}" in printed
    assert f"Prediction Accuracy: {accuracy:.2f}%" in printed
    return {
        "setting": {
            "stages": stages, "replicas": replicas, "microbatches": microbatches, "gradient_size": replicas * width,
            "seed": seed, "comm_mode": mode, "initial_weight": weight,
        },
        "comm_bytes": int(theirs.total_comm_bytes()),
        "accuracy_before": round(float(theirs.accuracy_before), 6),
        "accuracy": round(accuracy, 6),
        "weight_difference": [float(f"{each:.8g}") for each in apart(theirs)],
        "timeline": timeline(theirs),
    }  # fmt: skip


def recorded() -> dict[str, Any]:
    """Return all settings; the timeline of the published size is in published_step_grid.txt."""
    found = [figures(*setting) for setting in SETTINGS]
    return {
        "about": "What the published program (hybrid-simulator.txt) computes at some settings; it was run as printed.",
        "runs": [
            {name: value for name, value in each.items() if name != "timeline" or setting[0] != PUBLISHED}
            for each, setting in zip(found, SETTINGS, strict=True)
        ],
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(recorded(), indent=1) + "\n", encoding="utf-8")
