"""How long a lab takes, by one rule for all labs: `python tests/labs/lab_time.py labs/lab03*.ipynb` prints the minutes of each part.

The rule counts what a student sees. It leaves out what is folded: solutions, answers, the bodies of `<details>`, hidden code. Optional
parts are counted by the same rule, on their own. The minutes of a task include its cell. A bet or a view does not count as an output, too.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT), str(ROOT / "book/_ext")]  # for the command; behind tests/, which has a module of the same name as book/_ext

from folds import ANSWERS, OPTIONAL  # noqa: E402 - it can be imported only now
from notebooks import Cell, cells_of, with_folds  # noqa: E402

from hybridlab import widgets  # noqa: E402
from hybridlab.course.tasks import TASKS  # noqa: E402

WORDS_A_MINUTE = 130
CODE_LINES_A_MINUTE = 10
OUTPUT_SECONDS = 20
BET = 1  # minutes, as all below
VIEW = 5
OWN_CHANGE = 4  # of a build, in a graded course
TASK = {"number": 4, "written": 6, "puzzle": 25, "build": 5 + OWN_CHANGE}
BUILD_LINE = 2.5  # for each line of the worked solution: a student's program has 1.7 times as many lines, and each takes 1.5 minutes
ROUNDED_UP_TO = 5
LONGEST = 90
PUZZLES = {"lab19.t1", "lab19.t3"}  # hard puzzles: no schedule of the registry reaches the optimum

MINUTES: Mapping[str, float] = {
    "words": 1 / WORDS_A_MINUTE,
    "lines of code": 1 / CODE_LINES_A_MINUTE,
    "outputs": OUTPUT_SECONDS / 60,
    "bets": BET,
    "views": VIEW,
    **{f"{kind} tasks": minutes for kind, minutes in TASK.items()},
    "lines to build": BUILD_LINE,
}  # minutes of one of each
NO_INPUT = {"hide-input", "remove-input", "hide-cell", "remove-cell"}
NO_OUTPUT = {"hide-output", "remove-output", "hide-cell", "remove-cell"}
VIEWS = set(widgets.__all__) - {"Bet", "Revealed"}
KEY = re.compile(r'\bcheck\(\s*"(lab\d+\.t\d+)"')
HANDED_IN = re.compile(r'\bcheck\(\s*"lab\d+\.t\d+",\s*(\w+)')


@dataclass(frozen=True)
class LabTime:
    """The numbers of words, lines, outputs, tasks and so on in a lab: in the core, which everyone works through, and in optional parts."""

    core: Mapping[str, int]
    optional: Mapping[str, int]

    def sentence(self) -> str:
        """Return the sentence for the first cell of the lab."""
        more = f"; the optional parts take another {rounded(self.optional)}" if self.optional else ""
        return f"It takes about {rounded(self.core)} minutes{more}."


def minutes(pieces: Mapping[str, int]) -> float:
    return sum(count * MINUTES[part] for part, count in pieces.items())


def rounded(pieces: Mapping[str, int]) -> int:
    return ROUNDED_UP_TO * ceil(minutes(pieces) / ROUNDED_UP_TO)


def time_of(cells: Iterable[Cell]) -> LabTime:
    """Return the time that a lab with these cells takes."""
    core: Counter[str] = Counter()
    optional: Counter[str] = Counter()
    open_task = core, "", ""  # of the last task, because its solution comes later: the counter, the kind, and the source of its cell
    for cell, folds in with_folds(cells):
        pieces = optional if any(map(OPTIONAL.match, folds)) else core
        if "solution" in cell.tags:
            counter, kind, given = open_task
            if kind == "build":
                counter["lines to build"] += len(lines_to_write(cell.source, given))
        elif not any(map(ANSWERS.match, folds)):
            pieces += counted(cell)
            if "task" in cell.tags:
                open_task = pieces, kind_of(cell), cell.source
    return LabTime(core, optional)


def counted(cell: Cell) -> Counter[str]:
    """Return the pieces of a cell that a student sees."""
    if cell.kind == "markdown":
        return Counter({"words": words_of(cell.source)})
    if "task" in cell.tags:
        return Counter({f"{kind_of(cell)} tasks": 1})
    if "bet" in cell.tags:
        return Counter({"bets": 1})
    tags = set(cell.tags)
    outputs = () if tags & NO_OUTPUT else cell.outputs
    views = sum("".join(each.get("data", {}).get("text/plain", "")).startswith(tuple(f"<{name}" for name in VIEWS)) for each in outputs)
    lines = 0 if tags & NO_INPUT else len(lines_of(cell.source))
    return Counter({"lines of code": lines, "outputs": len(outputs) - views, "views": views})


def kind_of(cell: Cell) -> str:
    """Return the kind of the task that a cell for an answer hands in. A hard puzzle is a kind of its own."""
    (key,) = KEY.findall(cell.source)
    return "puzzle" if key in PUZZLES else TASKS[key].kind


def lines_to_write(solution: str, given: str) -> list[str]:
    """Return the lines of a worked solution that the cell for the answer does not give. In the solution, the function has another name."""
    (name,) = HANDED_IN.findall(given)
    there = lines_of(given)
    return [line for line in lines_of(re.sub(r"\bsolution\b", name, solution), comments=False) if line not in there]


def lines_of(code: str, comments: bool = True) -> list[str]:
    """Return the lines that are not blank, and that are not only a comment unless comments count, too."""
    return [line for line in map(str.strip, code.splitlines()) if line and (comments or not line.startswith("#"))]


def words_of(text: str) -> int:
    """Return the number of words that a reader sees. Folded text, tags, addresses of links and signs alone do not count."""
    text = re.sub(r"(</summary>).*?</details>", r"\1", text, flags=re.DOTALL)
    text = re.sub(r"</?[a-z][^>]*>|\]\([^)]*\)", " ", text)
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def table(time: LabTime) -> str:
    """Return the pieces and the minutes of each part, in the core and in the optional parts."""
    rows = [f"{'':16}{'core':>6}{'minutes':>9}{'optional':>10}{'minutes':>9}"]
    for part, each in MINUTES.items():
        core, optional = time.core.get(part, 0), time.optional.get(part, 0)
        if core or optional:
            rows.append(f"{part:16}{core:6}{core * each:9.1f}{optional:10}{optional * each:9.1f}")
    rows.append(f"{'all':16}{'':6}{minutes(time.core):9.1f}{'':10}{minutes(time.optional):9.1f}")
    return "\n".join(rows)


if __name__ == "__main__":
    for lab in map(Path, sys.argv[1:]):
        print(f"{lab.name}\n{table(time_of(cells_of(lab)))}\n{time_of(cells_of(lab)).sentence()}\n")
