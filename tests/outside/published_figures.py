"""Read the figures that the published documents print; their text is stored outside the repository, beside it.

`python tests/outside/published_figures.py` writes them into `tests/data/published_figures.json`.
"""

import json
import re
from typing import Any

from beside import DATA, SOURCES

FILE = DATA / "published_figures.json"
REPORT = "hybrid-report.txt"
PROGRAMS = ("hybrid-simulator.txt", "event-timeline.txt")
FIGURES = {  # the name of the figure in hybridlab.course.published: where the report prints its numbers
    "gpipe_bubble": r"Pipeline Bubbles\s+~(\d+)-(\d+)%\s+~\d+-\d+%",
    "one_f_one_b_bubble": r"Pipeline Bubbles\s+~\d+-\d+%\s+~(\d+)-(\d+)%",
    "microbatch_count": r"Number of micro-batches: (\d+)",
    "compute": r"= 8 \\times 130 = (\d+)",
    "all_reduce": r"\*\*Total AR Time:\*\* \$2 \\times 20 = (\d+)",
    "warm_up": r"1 \\times 50 = (\d+)",
    "cool_down": r"1 \\times 80 = (\d+)",
    "overhead": r"Total Pipeline Overhead:\*\* (\d+)",
    "total": r"= 1040 \+ 40 \+ 130 = (\d+)",
    "memory_without": r"8 \\times 10 = (\d+)\$? units",
    "memory_peak": r"Peak of ~(\d+) units",
    "memory_saving": r"\(80-20\)/80 = (\d+)",
    "test_2": r"Compute only:\s*\$?8.*= (\d+)",
    "test_3": r"1040 / 1210.*?(\d\.\d+)x",
    "test_4_sync": r"Inter-stage Sync: ~(\d+) ms",
    "test_4": r"60 / 1210.*?(\d+)%",
}
SETTING = {
    "global_batch": r"Global batch size: (\d+)",
    "microbatch_size": r"Micro-batch size: (\d+)",
    "forward": r"Forward Pass:\*\* (\d+) ms",
    "backward": r"Backward Pass:\*\* (\d+) ms",
    "ring_step": r"Per-step Time:\*\* (\d+) ms",
}
LABELS = r"Rank 0[\s\S]*?Warmup \((\d+) step\)[\s\S]*?Steady State \((\d+) pairs\)[\s\S]*?Cooldown \((\d+) steps\)"
TABLES = {
    "benchmark_1": ("Benchmark 1", "Observation"),
    "benchmark_2": ("Benchmark 2", "Observation"),
    "benchmark_3": ("Benchmark 3", r"7\. Results"),
}


def text(document: str) -> str:
    return (SOURCES / document).read_text(encoding="utf-8")


def numbers(pattern: str) -> list[float]:
    """Return the numbers in the report's text that the pattern finds, which must be there once."""
    (found,) = re.findall(pattern, text(REPORT))
    return [float(each) for each in (found if isinstance(found, tuple) else (found,))]


def rows(head: str, end: str) -> list[list[float]]:
    """Return the rows of numbers between two lines of the report; a dash is 0."""
    (section,) = re.findall(rf"{head}(.*?){end}", text(REPORT), re.DOTALL)
    lines = [line.replace("-", "0").replace("%", "").replace("x", "").split("\t") for line in section.splitlines()]
    return [[float(cell) for cell in cells] for cells in lines if len(cells) > 1 and cells[0].strip().isdigit()]


def metrics() -> list[list[float]]:
    """Return the expected and the observed value of each row in section 7.1.2."""
    (section,) = re.findall(r"7\.1\.2 Performance Metrics(.*?)7\.2 Discussion", text(REPORT), re.DOTALL)
    cells = [line.split("\t")[1:3] for line in section.splitlines() if line.count("\t") == 3][1:]
    return [[float(re.sub(r"[^\d.]", "", cell)) for cell in row] for row in cells]


def phases() -> list[str]:
    """Return the operations of rank 0 in each phase, as the report cuts them."""
    report = text(REPORT)
    section = report[report.index("Rank 0 (Stage 0):") : report.index("Rank 1 (Stage 1):")]
    parts = re.split(r"Warmup|Steady State|Cooldown|All-Reduce", section)[1:4]
    return [" ".join(f"0{kind}{number}" for kind, number in re.findall(r"([FB])\((\d)\)", part)) for part in parts]


def program(document: str) -> dict[str, Any]:
    """Return what a program's printed output says: bytes, the accuracy, and how far replicas are apart."""
    printed = text(document)
    printed = printed[printed.index("Hybrid Parallel Simulation (K=3") :]
    return {
        "comm_bytes": [int(each) for each in re.findall(r"Communication Bytes\s*[:=] (\d+)", printed)],
        "accuracy": [float(each) for each in re.findall(r"Prediction Accuracy: (\S+)%", printed)],
        "weight_difference": [float(each) for each in re.findall(r"Max Weight Difference = (\S+)", printed)],
    }


def all_printed() -> dict[str, Any]:
    return {
        "about": "Figures printed by the published report on hybrid parallelism (hybrid-report.txt) and by the two published programs.",
        "figures": {name: numbers(pattern) for name, pattern in FIGURES.items()},
        "setting": {name: numbers(pattern)[0] for name, pattern in SETTING.items()},
        "phases_of_rank_0": phases(),
        "labels_of_rank_0": numbers(LABELS),
        **{name: rows(*between) for name, between in TABLES.items()},
        "metrics": metrics(),
        "programs": {document: program(document) for document in PROGRAMS},
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(all_printed(), indent=1) + "\n", encoding="utf-8")
