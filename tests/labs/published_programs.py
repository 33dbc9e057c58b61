"""Run the two published programs as they were printed; their text is stored outside the repository, beside it.

In the documents, a page break moves the lines below it to the left. Each number in ``COLUMNS`` is the original column of the line that
follows such a break. The lines below it are moved by the same distance.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

SOURCES = Path(__file__).parents[3] / "shared" / "sources"
PROGRAMS = ("hybrid-simulator.txt", "event-timeline.txt")
needs_sources = pytest.mark.skipif(not SOURCES.is_dir(), reason="needs ../shared/sources beside the repository")

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
        np.random.seed(seed)  # noqa: NPY002
        simulator = names["HybridSimulator"]()
        simulator.run()
    finally:
        np.random.set_state(state)  # noqa: NPY002
    return simulator, "\n".join(printed)
