"""Tests of nbval for stored labs: one test for each cell compares it with the same cell of a lab that has already run."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from typing import Any

from nbformat import NotebookNode
from nbval.plugin import IPyNbCell, IPyNbFile

MEASURED = Path(__file__).with_name("measured.cfg")  # what is left out of the comparison, in the form that nbval reads


class Recording:
    """A replacement for the kernel of nbval: it sends the outputs that a cell had when the lab ran."""

    def __init__(self, cell: NotebookNode) -> None:
        outputs = (*cell.outputs, NotebookNode(output_type="status", execution_state="idle"))
        asked = {"msg_id": "as it ran"}
        self.messages = deque({"msg_type": each.output_type, "content": each, "parent_header": asked} for each in outputs)

    def is_alive(self) -> bool:
        return True

    def stop(self) -> None:
        self.messages.clear()

    def execute_cell_input(self, source: str, allow_stdin: bool = False) -> str:
        return "as it ran"

    def await_reply(self, msg_id: str, timeout: float | None = None) -> None:
        """Do nothing, because all messages are there already."""

    await_idle = await_reply

    def get_message(self, stream: str, timeout: float | None = None) -> dict[str, Any]:
        if not self.messages:
            raise Empty
        return self.messages.popleft()


class StoredCell(IPyNbCell):  # type: ignore[misc]
    """A cell that nbval compares.

    A cell that was stored without having run fails here, although nbval itself ignores such cells.
    """

    def runtest(self) -> None:
        if self.cell.execution_count is None:
            self.raise_cell_error("This cell is stored without having run: run make labs-refresh")
        ran = self.parent.ran[self.cell_num]
        if ran.source != self.cell.source:
            self.raise_cell_error(f"Another lab has run, with this cell: {ran.source}")
        self.parent.kernel = Recording(ran)
        super().runtest()


class StoredLab(IPyNbFile):  # type: ignore[misc]
    """A stored lab; ``run`` is the same lab with its outputs from the run."""

    def __init__(self, *, run: NotebookNode, **how: Any) -> None:
        super().__init__(**how)
        self.ran = [cell for cell in run.cells if cell.cell_type == "code"]

    def setup(self) -> None:
        self.setup_sanitize_files()
        self.skip_compare = (*self.skip_compare, "image/svg+xml")  # a figure for the book, which is not stored

    def get_sanitize_files(self) -> list[str]:
        return [str(MEASURED)]

    def collect(self) -> Iterator[IPyNbCell]:
        for cell in super().collect():
            yield StoredCell.from_parent(self, name=cell.name, cell_num=cell.cell_num, cell=cell.cell, options=cell.options)
