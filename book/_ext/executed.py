"""Runs each lab once and keeps its outputs, for the comparison of outputs and for the book.

The outputs of the book's own pages with code are kept too. Kept outputs are used only while the notebook's code and the sources that
it runs on are unchanged: the folder is named after the sources, and a lab is found there by its code. So no stale output is published.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from kept import folder
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode

if TYPE_CHECKING:  # the tests of the labs need no Sphinx
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

SECONDS_A_CELL = 600  # far more than any cell needs: only a cell that hangs reaches this limit
EVERYWHERE_THE_SAME = {
    "TQDM_DISABLE": "1",  # a progress bar appears after some seconds, so only slow machines would show it
    "HYBRIDLAB_PARTS": os.devnull,  # a lab uses the library's parts, even if somebody has built theirs beside it
}

# The kernel returns each figure as SVG beside the stored PNG, for the book (book/_ext/page_figures.py), and each widget as one output
# with all its forms (hybridlab/widgets/still.py shows two outputs to a reader). NotImplementedError makes IPython ask for the other forms.
ALL_FORMS = (
    "get_ipython().display_formatter.formatters['image/svg+xml']"
    ".for_type_by_name('hybridlab.plot.picture', 'Picture', lambda figure: figure.svg()); "
    "get_ipython().display_formatter.ipython_display_formatter"
    ".for_type_by_name('hybridlab.widgets.still', 'Pictured', lambda widget: exec('raise NotImplementedError'))"
)


class LabError(Exception):
    """A lab that cannot be run to its end; the message says which cell and why."""

    def __init__(self, message: str, lab: NotebookNode) -> None:
        super().__init__(message)
        self.lab = lab  # with the outputs up to the cell that failed


def executed(labs: Mapping[Path, NotebookNode], kept: Path | None = None) -> Iterator[tuple[Path, NotebookNode | LabError]]:
    """Yield every lab with the outputs of a fresh kernel, or with the error that stopped it, in the order in which they end.

    The number of labs that run at a time is one more than the number of processors, because labs also wait: for their kernels, and in
    lab 8 for sleeping threads. A kept lab is yielded at once. A lab that ran to its end is kept in the folder ``kept``.
    """
    cache = get_cache(kept or folder())
    try:
        waiting = {}
        for path, lab in labs.items():
            try:
                yield path, cache.merge_match_into_notebook(lab)[1]
            except KeyError:
                waiting[path] = lab
        with ThreadPoolExecutor((os.cpu_count() or 1) + 1) as pool:
            runs = {pool.submit(run, path, lab): path for path, lab in waiting.items()}
            for done in as_completed(runs):
                path = runs[done]
                try:
                    lab, seconds = done.result()
                except LabError as why:
                    yield path, why
                    continue
                bundle = CacheBundleIn(lab, str(path), data={"execution_seconds": seconds})
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
                yield path, lab
    finally:
        cache.db.dispose()  # closes the database: Python 3.13 and newer warn about an open one


def run(path: Path, lab: NotebookNode) -> tuple[NotebookNode, float]:
    """Return ``lab`` with the outputs of a fresh kernel in the folder of ``path``, widget states included, and the seconds it took.

    Raises:
        LabError: a cell that is not tagged `raises-exception` failed, or a cell did not end.
    """
    fresh = nbformat.from_dict(lab)
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    begun = perf_counter()
    where = {"metadata": {"path": str(path.parent)}}
    try:
        client = NotebookClient(fresh, timeout=SECONDS_A_CELL, kernel_name="python3", resources=where, record_timing=False)
        client.extra_arguments = [f"--IPKernelApp.exec_lines={ALL_FORMS}"]
        asyncio.run(
            client.async_execute(env=os.environ | EVERYWHERE_THE_SAME)
        )  # asyncio.run closes its event loop: client.execute() leaves one open in each thread
    except (CellExecutionError, CellTimeoutError) as why:
        raise LabError(str(why), fresh) from why
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
    return fresh, perf_counter() - begun


def joined(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Return the outputs with consecutive packets of printed text joined.

    The kernel may send the end of a line in another packet than the line, and the book would then show an empty line.
    """
    kept: list[NotebookNode] = []
    for output in outputs:
        if kept and output.output_type == kept[-1].output_type == "stream" and output.name == kept[-1].name:
            kept[-1].text += output.text
        else:
            kept.append(NotebookNode(output))
    return kept


def keep_there(app: "Sphinx", config: Any) -> None:
    """Make the book use the kept outputs, and keep the outputs of what it runs itself."""
    config.nb_execution_cache_path = str(folder())
    os.environ.update(EVERYWHERE_THE_SAME)  # kernels inherit it


def run_all(app: "Sphinx", env: "BuildEnvironment", added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Run all notebooks without kept outputs, several at a time, before Sphinx reads the pages one by one.

    Raises:
        ExtensionError: a page cannot be run to its end.
    """
    from myst_nb.core.read import create_nb_reader
    from sphinx.errors import ExtensionError

    found = {}
    for name in sorted(added | changed):
        path = Path(env.doc2path(name))
        source = [path.read_text(encoding="utf-8")]
        app.emit("source-read", name, source)  # fills in the cells of the gallery
        reader = create_nb_reader(str(path), env.myst_config, env.mystnb_config, source[0])
        if reader:
            found[path] = reader.read(source[0])
    for path, shown in executed(found):
        if isinstance(shown, LabError):
            raise ExtensionError(f"{path.name}: {shown}")
    return []


def setup(app: "Sphinx") -> dict[str, bool]:
    app.connect("config-inited", keep_there)
    app.connect("env-get-outdated", run_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
