"""Run each lab once, then compare its outputs with the stored ones, or store the outputs: `python tests/labs/run_labs.py check labs`.

`check` runs each lab whose result was not saved in an earlier run (see `book/_ext/executed.py`). Then nbval, a pytest plugin, compares
the outputs with its own options, in one test for each cell. `refresh` stores the outputs instead, in normal form.

Stored outputs must be the same on every machine. Text, figures as PNG and results are stored. Five things are left out: the state and the
ids of widgets and the figures as SVG (the book takes them from the run itself), timings, the Python version of this machine, and paths in
tracebacks. Where a printed text differs in measured numbers alone, the stored text stays, unless a picture of the lab has changed: a
picture and the numbers beside it are of one run. So a second refresh changes only measured times and their pictures, in labs 8 and 16.

nbval compares printed text, the text of results and of widgets, and errors. It does not compare pictures, because their last pixels
differ between builds of a font library, and it does not compare the numbers that `measured.cfg` leaves out. So a lab prints the numbers
behind a figure. nbval does not know that a `;` at the end of a cell hides its result, so no cell ends in one.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
MEASURED = ROOT / "tests/labs/measured.cfg"
sys.path.insert(0, str(ROOT / "book/_ext"))

from executed import LabError, executed, joined  # noqa: E402 - it can be imported only now

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
KEPT_OF_A_LAB = ("mystnb",)
KEPT_OF_A_CELL = ("tags", "mystnb", "jupyter", "jp-MarkdownHeadingCollapsed")
HIDDEN_ON_THE_PAGE = {"hide-input", "remove-input"}
KEPT_OF_AN_OUTPUT = ("image/png",)  # the width at which a figure is shown, and its alternative text
FOR_THE_BOOK = {"application/vnd.jupyter.widget-view+json", "image/svg+xml"}  # kinds of data that a stored lab does not have


class Judge:
    """The pytest plugin that collects the stored labs; ``runs`` has each lab as it ran, with the new outputs."""

    def __init__(self, runs: Mapping[Path, NotebookNode]) -> None:
        self.runs = runs

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        from stored_labs import StoredLab  # this imports nbval, and pytest must load nbval first

        return StoredLab.from_parent(parent, path=file_path, run=self.runs[file_path]) if file_path in self.runs else None


def check(labs: Iterable[Path]) -> int:
    """Compare every lab with its run, in one test for each cell; return pytest's exit status."""
    runs = {}
    for path, lab in executed({path: nbformat.read(path, as_version=4) for path in labs}):
        print(f"{path.name} has {'stopped' if isinstance(lab, LabError) else 'run'}", flush=True)
        runs[path] = lab.lab if isinstance(lab, LabError) else lab  # the output shows which cell failed
    settings = ("-c", str(ROOT / "pyproject.toml"), "--override-ini=addopts=")  # the options there leave nbval out
    return int(pytest.main(["-q", *settings, *map(str, runs)], plugins=[Judge(runs)]))


def normalised(lab: NotebookNode) -> NotebookNode:
    """Return the lab without anything that a second run or another machine would store differently."""
    cells = []
    count = 0
    for cell in lab.cells:
        own = _only(cell.metadata, KEPT_OF_A_CELL)
        if HIDDEN_ON_THE_PAGE.intersection(own.get("tags", ())):
            own["jupyter"] = NotebookNode(source_hidden=True)  # JupyterLab does not know the tags of the book
        kept = NotebookNode(id=cell.id, cell_type=cell.cell_type, metadata=own, source=cell.source)
        if "attachments" in cell:
            kept.attachments = cell.attachments
        if cell.cell_type == "code":
            if cell.execution_count is not None:
                count += 1
            kept.execution_count = count if cell.execution_count is not None else None
            kept.outputs = _outputs(cell.outputs, kept.execution_count)
        cells.append(kept)
    metadata = NotebookNode(_only(lab.metadata, KEPT_OF_A_LAB), kernelspec=KERNEL, language_info={"name": "python"})
    return NotebookNode(nbformat=4, nbformat_minor=5, metadata=metadata, cells=cells)


def _outputs(outputs: Iterable[NotebookNode], count: int | None) -> list[NotebookNode]:
    kept: list[NotebookNode] = []
    for output in joined(outputs):
        if output.output_type == "stream":
            kept.append(output)
        elif output.output_type == "error":
            last_line = f"{output.ename}: {output.evalue}"
            kept.append(NotebookNode(output, traceback=[last_line]))
        else:
            data = {kind: value for kind, value in output.data.items() if kind not in FOR_THE_BOOK}
            result = NotebookNode(output, data=NotebookNode(data), metadata=_only(output.metadata, KEPT_OF_AN_OUTPUT))
            if output.output_type == "execute_result":
                result.execution_count = count
            kept.append(result)
    return kept


def _only(metadata: NotebookNode, names: Iterable[str]) -> NotebookNode:
    return NotebookNode({name: metadata[name] for name in names if name in metadata})


def refresh(labs: Iterable[Path]) -> int:
    """Run every lab and store its outputs; return the number of labs that failed."""
    before = {path: path.read_text(encoding="utf-8") for path in labs}
    failed = 0
    for path, lab in executed({path: nbformat.reads(text, as_version=4) for path, text in before.items()}):
        try:
            after = stored_text(lab, nbformat.reads(before[path], as_version=4))
        except LabError as why:
            failed += 1
            print(f"{path.name}: left as it was\n{why}", file=sys.stderr, flush=True)
            continue
        if after != before[path]:
            path.write_text(after, encoding="utf-8")
        print(f"{path.name}: {'stored' if after != before[path] else 'unchanged'}", flush=True)
    return failed


def stored_text(lab: NotebookNode | LabError, before: NotebookNode | None = None) -> str:
    """Return the file of a lab that has run; raise an error if the lab stopped or wrote to standard error.

    Printed text that differs from the one stored before in measured numbers alone stays as it is, if all pictures do.
    """
    if isinstance(lab, LabError):
        raise lab
    lab = normalised(lab)
    keep_measured(lab, before)
    for number, cell in enumerate(lab.cells):
        if any(output.get("name") == "stderr" for output in cell.get("outputs", ())):
            raise LabError(f"cell {number} writes to standard error, which is not stored:\n{cell.source}", lab)
    return nbformat.writes(lab) + "\n"


def keep_measured(lab: NotebookNode, before: NotebookNode | None) -> None:
    """Put the stored text of a lab in place of one that differs from it in measured numbers alone, if the lab has the same pictures."""
    if before is None or pictures(before) != pictures(lab):
        return
    stored = {cell.id: cell.get("outputs", ()) for cell in before.cells}
    for cell in lab.cells:
        for old, new in zip(stored.get(cell.id, ()), cell.get("outputs", ()), strict=False):
            if "text" in old and "text" in new and compared(old.text) == compared(new.text):
                new.text = old.text


def pictures(lab: NotebookNode) -> list[str]:
    """Return the data of all pictures of a lab, without line ends."""
    outputs = (output for cell in lab.cells for output in cell.get("outputs", ()))
    return ["".join(output["data"]["image/png"]).replace("\n", "") for output in outputs if "image/png" in output.get("data", {})]


def compared(text: str) -> str:
    """Return the text that nbval compares."""
    for pattern, replacement in re.findall("^regex: (.*)$\n^replace: (.*)$", MEASURED.read_text(encoding="utf-8"), flags=re.MULTILINE):
        text = re.sub(pattern, replacement, text)
    return text


ACTIONS: Mapping[str, Callable[[Iterable[Path]], int]] = {"check": check, "refresh": refresh}


def main(arguments: list[str]) -> int:
    """Check or refresh every lab that is named, or that is in a named folder."""
    if len(arguments) < 2 or arguments[0] not in ACTIONS:
        print("use: python tests/labs/run_labs.py check|refresh labs", file=sys.stderr)
        return 2
    named = [Path(argument).resolve() for argument in arguments[1:]]
    return ACTIONS[arguments[0]]([lab for path in named for lab in (sorted(path.glob("*.ipynb")) if path.is_dir() else [path])])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
