"""Run labs again and store their outputs in normal form: `python tests/refresh_labs.py labs`.

Stored outputs are what nbval compares with, so they must be the same whoever stores them. Kept: text, figures, results.
Left out: the state and the ids of widgets (the book's build runs the labs itself), timings, versions of this machine's
Python, paths in tracebacks. Running this twice changes nothing but the pictures of measured times in lab 8.

nbval compares printed text, the text of results and of widgets, and errors. It does not compare pictures, which differ in
their last pixels between builds of a font library: so a lab prints the numbers behind a figure. Nor does it know that a
`;` at the end of a cell hides its result: so no cell ends in one.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
KEPT_OF_A_LAB = ("mystnb",)
KEPT_OF_A_CELL = ("tags", "mystnb", "jupyter")
KEPT_OF_AN_OUTPUT = ("image/png",)  # the width that a figure is shown at
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
SECONDS_A_CELL = 120


class LabError(Exception):
    """A lab whose outputs cannot be stored; the message says which cell and why."""


def executed(lab: NotebookNode, folder: Path) -> NotebookNode:
    """Return the lab as a fresh kernel runs it, started in ``folder``."""
    fresh = nbformat.from_dict(lab)
    client = NotebookClient(
        fresh,
        timeout=SECONDS_A_CELL,
        kernel_name=KERNEL["name"],
        resources={"metadata": {"path": str(folder)}},
        store_widget_state=False,
        record_timing=False,
    )
    try:
        client.execute()
    except CellExecutionError as error:
        raise LabError(str(error)) from error
    return fresh


def normalised(lab: NotebookNode) -> NotebookNode:
    """Return the lab with nothing in it that a second run, or another machine, would store differently."""
    cells = []
    count = 0
    for cell in lab.cells:
        kept = NotebookNode(
            id=cell.id,
            cell_type=cell.cell_type,
            metadata=_only(cell.metadata, KEPT_OF_A_CELL),
            source=cell.source,
        )
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
    for output in outputs:
        if output.output_type == "stream":
            if kept and kept[-1].output_type == "stream" and kept[-1].name == output.name:
                kept[-1].text += output.text  # a kernel sends the lines of one cell in packets of any size
            else:
                kept.append(NotebookNode(output))
        elif output.output_type == "error":
            last_line = f"{output.ename}: {output.evalue}"
            kept.append(NotebookNode(output, traceback=[last_line]))
        else:
            data = {kind: value for kind, value in output.data.items() if kind != WIDGET_VIEW}
            result = NotebookNode(output, data=NotebookNode(data), metadata=_only(output.metadata, KEPT_OF_AN_OUTPUT))
            if output.output_type == "execute_result":
                result.execution_count = count
            kept.append(result)
    return kept


def _only(metadata: NotebookNode, names: Iterable[str]) -> NotebookNode:
    return NotebookNode({name: metadata[name] for name in names if name in metadata})


def refresh(path: Path) -> bool:
    """Run the lab and store its outputs; return whether the file changed."""
    before = path.read_text(encoding="utf-8")
    lab = normalised(executed(nbformat.reads(before, as_version=4), path.parent))
    for number, cell in enumerate(lab.cells):
        if any(output.get("name") == "stderr" for output in cell.get("outputs", ())):
            raise LabError(f"cell {number} writes to standard error, which is not stored:\n{cell.source}")
    after = nbformat.writes(lab) + "\n"
    if after != before:
        path.write_text(after, encoding="utf-8")
    return after != before


def main(arguments: list[str]) -> int:
    """Refresh every lab named, or in a folder named; return how many could not be."""
    named = [Path(argument) for argument in arguments]
    labs = [lab for path in named for lab in (sorted(path.glob("*.ipynb")) if path.is_dir() else [path])]
    failed = 0
    for lab in labs:
        try:
            print(f"{lab}: {'stored' if refresh(lab) else 'unchanged'}", flush=True)
        except LabError as error:
            failed += 1
            print(f"{lab}: left as it was\n{error}", file=sys.stderr, flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
