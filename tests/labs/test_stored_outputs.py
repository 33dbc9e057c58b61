"""Test that the labs are stored with outputs that nbval really compares, in the form that `make labs-refresh` gives them."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cases import in_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbformat import NotebookNode

load = import_module  # imported in the test that needs it: modules that read notebooks take seconds, which collecting tests must not take
pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
LABS = sorted((ROOT / "labs").glob("*.ipynb"))
# an address in memory, or a folder of somebody's machine
UNSTABLE = re.compile(r"\b0x[0-9a-f]{6,}|(?<![\w.])/(?:home|root|tmp|Users|usr|var)/|[A-Z]:\\")
all_labs = in_turn("path", LABS)


@pytest.fixture(autouse=True, scope="module")
def imported() -> None:
    """Import what pytester would import and then forget: sqlalchemy, which stores outputs, cannot be imported twice."""
    load("run_labs")


@cache
def read(path: Path) -> NotebookNode:
    """Return a stored lab, which nobody changes: tests that change one copy it."""
    return load("nbformat").read(path, as_version=4)


def code_cells(lab: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in lab.cells if cell.cell_type == "code"]


def texts(output: NotebookNode) -> Iterator[str]:
    """Return all text that a reader of the stored output sees."""
    yield output.get("text", "")
    yield output.get("evalue", "")
    yield from (value for kind, value in output.get("data", {}).items() if kind.startswith("text/"))


@all_labs
def test_every_cell_is_stored_as_run_from_top_to_bottom(path: Path) -> None:
    # nbval passes over a cell without a count, so a lab with cleared outputs would be all green
    counts = [cell.execution_count for cell in code_cells(read(path))]
    assert counts == list(range(1, len(counts) + 1))


@all_labs
def test_stored_outputs_are_in_normal_form(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == load("nbformat").writes(load("run_labs").normalised(read(path))) + "\n", (
        "run make labs-refresh"
    )


@all_labs
def test_nothing_is_stored_that_another_machine_would_store_differently(path: Path) -> None:
    for cell in code_cells(read(path)):
        for output in cell.outputs:
            assert output.get("name") != "stderr", cell.source
            assert not any(UNSTABLE.search(text) for text in texts(output)), cell.source


@all_labs
def test_every_picture_has_an_alternative_text(path: Path) -> None:
    for cell in code_cells(read(path)):
        drawn = [output for output in cell.outputs if "image/png" in output.get("data", {})]
        assert all(output.metadata["image/png"].get("alt") for output in drawn), "run make labs-refresh"
        figures = any(output.data["text/plain"].startswith("<Figure") for output in drawn)  # a view on the site is no picture
        assert not figures or cell.metadata.get("mystnb", {}).get("image", {}).get("alt"), cell.source


@all_labs
def test_every_widget_is_stored_as_a_picture_or_as_words(path: Path) -> None:
    shown = [output.data for cell in code_cells(read(path)) for output in cell.outputs if "data" in output]
    widgets = [data for data in shown if re.match(r"<\w+(Explorer|Stepper|View|Editor|Curves|Film|Bet|Revealed)?\b", data["text/plain"])]
    assert widgets
    assert [data["text/plain"] for data in widgets if len(data) == 1] == []
    assert path.stat().st_size < 500_000


@all_labs
def test_every_output_is_compared(path: Path) -> None:
    for cell in read(path).cells:
        tags = {tag.replace("_", "-").lower() for tag in cell.metadata.get("tags", [])}
        assert not tags & {"nbval-skip", "nbval-ignore-output"}, cell.source
        assert "NBVAL_" not in cell.source
    for cell in code_cells(read(path)):
        assert not cell.source.rstrip().endswith(";"), f"nbval does not hide what ';' hides: {cell.source}"
        assert ("raises-exception" in cell.metadata.get("tags", [])) == any(out.output_type == "error" for out in cell.outputs)


@all_labs
def test_most_cells_print_what_they_found(path: Path) -> None:
    cells = code_cells(read(path))
    assert sum(any(any(texts(output)) for output in cell.outputs) for cell in cells) > len(cells) / 2


@all_labs
def test_lines_of_code_fit_the_page(path: Path) -> None:
    """Lines of hidden cells, too; only a long order of a device stays in one line."""
    lines = [line for cell in code_cells(read(path)) for line in cell.source.splitlines() if not re.match(r"device \d+: ", line)]
    assert not [line for line in lines if len(line) > 88]


def judged(pytester: pytest.Pytester, stored: NotebookNode, ran: NotebookNode) -> tuple[dict[str, int], str]:
    """The results and messages of the tests of a stored lab, when it is compared with the lab as it ran."""
    path = pytester.path / "lab.ipynb"
    load("nbformat").write(stored, path)
    result = pytester.inline_run("-q", str(path), plugins=[load("run_labs").Judge({path: ran})])
    told = "\n".join(str(report.longrepr) for report in result.getreports("pytest_runtest_logreport") if report.failed)
    counts = dict(zip(("passed", "skipped", "failed"), result.countoutcomes(), strict=True))
    return counts, told


def with_one_digit_changed(lab: NotebookNode) -> NotebookNode:
    """Return the lab with the last digit of its last printed number changed."""
    changed = load("nbformat").from_dict(lab)
    for cell in reversed(code_cells(changed)):
        for output in reversed(cell.outputs):
            holder, key = (output, "text") if "text" in output else (output.get("data", {}), "text/plain")
            digits = list(re.finditer(r"\d", holder.get(key, "")))
            if digits:
                place, text = digits[-1].start(), holder[key]
                holder[key] = text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]
                return changed
    raise AssertionError("no lab without a number in its outputs")


@pytest.fixture(scope="module")
def short() -> NotebookNode:
    """Give the first cells of a stored lab; if nothing has changed, a run gives the same outputs."""
    lab = load("nbformat").from_dict(read(LABS[0]))
    lab.cells = lab.cells[: 1 + [place for place, cell in enumerate(lab.cells) if cell.cell_type == "code"][7]]
    return lab


def test_a_lab_that_shows_what_is_stored_passes(pytester: pytest.Pytester, short: NotebookNode) -> None:
    assert judged(pytester, short, short) == ({"passed": len(code_cells(short)), "skipped": 0, "failed": 0}, "")


def test_one_changed_digit_turns_a_cell_red(pytester: pytest.Pytester, short: NotebookNode) -> None:
    counts, told = judged(pytester, with_one_digit_changed(short), short)
    assert counts == {"passed": len(code_cells(short)) - 1, "skipped": 0, "failed": 1}
    assert "Cell outputs differ" in told


@in_turn("outputs_too", [True, False])
def test_one_cleared_cell_turns_red(pytester: pytest.Pytester, short: NotebookNode, outputs_too: bool) -> None:
    cleared = load("nbformat").from_dict(short)
    cell = next(cell for cell in code_cells(cleared) if cell.outputs)
    cell.execution_count = None
    cell.outputs = [] if outputs_too else cell.outputs
    counts, told = judged(pytester, cleared, short)
    assert counts["failed"] == 1
    assert "stored without having run: run make labs-refresh" in told


def test_a_cell_that_fails_turns_red_and_so_do_those_that_never_ran(pytester: pytest.Pytester, short: NotebookNode) -> None:
    stopped = load("nbformat").from_dict(short)
    with_outputs = [cell for cell in code_cells(stopped) if cell.outputs]
    place = len(with_outputs) // 2
    with_outputs[place].outputs = [load("nbformat").v4.new_output("error", ename="ValueError", evalue="why", traceback=["ValueError: why"])]
    for cell in with_outputs[place + 1 :]:
        cell.outputs = []
    counts, told = judged(pytester, short, stopped)
    assert counts["failed"] == len(with_outputs) - place
    assert "Cell execution caused an exception" in told
    assert "ValueError: why" in told


def test_a_lab_is_run_anew_where_its_code_or_the_sources_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    v4, runs = load("nbformat").v4, count()

    def run(path: Path, lab: NotebookNode) -> tuple[NotebookNode, float]:
        """Stand for a kernel, whose runs can be told apart by their outputs."""
        ran = load("nbformat").from_dict(lab)
        ran.cells[0].update(execution_count=1, outputs=[v4.new_output("stream", text=f"run {next(runs)}")])
        return ran, 0.1

    monkeypatch.setattr(load("executed"), "run", run)
    lab, path = v4.new_notebook(cells=[v4.new_code_cell("1")], metadata={"kernelspec": load("run_labs").KERNEL}), tmp_path / "lab.ipynb"

    def shown(lab: NotebookNode, kept: str) -> str:
        ((_, ran),) = load("executed").executed({path: lab}, tmp_path / kept)
        return str(code_cells(ran)[0].outputs[0].text)

    first = shown(lab, "sources")
    assert shown(lab, "sources") == first
    assert shown(lab, "other sources") != first
    lab.cells[0].source += "\n"
    assert shown(lab, "sources") != first


def test_a_lab_that_fails_is_not_kept_and_no_database_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executed, caches = load("executed"), []
    get_cache = executed.get_cache
    monkeypatch.setattr(executed, "get_cache", lambda folder: caches.append(get_cache(folder)) or caches[-1])
    lab = load("nbformat").v4.new_notebook(
        cells=[load("nbformat").v4.new_code_cell("1 / 0")], metadata={"kernelspec": load("run_labs").KERNEL}
    )
    for _ in range(2):
        ((_, why),) = executed.executed({tmp_path / "lab.ipynb": lab}, tmp_path / "kept")
        assert isinstance(why, executed.LabError)
        assert "ZeroDivisionError" in str(why)
    assert [cache.db.pool.checkedin() for cache in caches] == [0, 0]  # connections that wait for the next use


def test_every_source_that_a_lab_runs_on_counts(tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    source, script, lock = tmp_path / "library/a.py", tmp_path / "library/a.js", tmp_path / "lock"
    names = set()
    for path, text in ((source, "1"), (script, "1"), (lock, "1"), (source, "2"), (script, "2"), (lock, "2")):
        path.write_text(text, encoding="utf-8")
        names.add(load("kept").digest(tmp_path, ("library", "lock") if lock.exists() else ("library",)))
    script.rename(tmp_path / "library/b.js")
    names.add(load("kept").digest(tmp_path, ("library", "lock")))
    assert len(names) == 7
    (tmp_path / "library/__pycache__").mkdir()
    (tmp_path / "library/__pycache__/a.pyc").write_text("3", encoding="utf-8")
    assert load("kept").digest(tmp_path, ("library", "lock")) in names


def noisy(count: int, model: str, seconds: str, folder: str) -> NotebookNode:
    """Return a lab as one machine ran it; the arguments differ from machine to machine, and the content is the same."""
    view = {
        "application/vnd.jupyter.widget-view+json": {"model_id": model},
        "image/svg+xml": f"<svg id='{model}'/>",
        "text/plain": "<Explorer>",
    }
    assert set(view) - {"text/plain"} == load("run_labs").FOR_THE_BOOK
    error = load("nbformat").v4.new_output("error", ename="Refused", evalue="why", traceback=[f"File {folder}/cell.py", "Refused: why"])
    first = load("nbformat").v4.new_code_cell(
        "explorer", execution_count=count, metadata={"execution": {"iopub.status.busy": seconds}, "tags": ["bet"]}
    )
    first.outputs = [
        load("nbformat").v4.new_output("stream", name="stdout", text="one\n"),
        load("nbformat").v4.new_output("stream", name="stdout", text="two\n"),
        load("nbformat").v4.new_output("execute_result", data=view, execution_count=count),
    ]
    second = load("nbformat").v4.new_code_cell("refused", execution_count=count + 2, metadata={"scrolled": True}, outputs=[error])
    heading = load("nbformat").v4.new_markdown_cell("# Solution", metadata={"jp-MarkdownHeadingCollapsed": True, "editable": True})
    lab = load("nbformat").v4.new_notebook(cells=[heading, first, second])
    for number, cell in enumerate(lab.cells):
        cell.id = f"cell-{number}"
    lab.metadata = load("nbformat").NotebookNode(language_info={"name": "python", "version": seconds}, widgets={"state": {model: {}}})
    return lab


def test_packets_of_printed_text_are_joined_wherever_the_kernel_cuts_them() -> None:
    new_output = load("nbformat").v4.new_output
    packets = [new_output("stream", name=name, text=text) for name, text in (("stdout", "head"), ("stdout", "\n row\n"), ("stderr", "why"))]
    packets += [new_output("display_data", data={"text/plain": "picture"}), new_output("stream", name="stdout", text="end")]
    texts = [output.get("text", "picture") for output in load("executed").joined(packets)]
    assert texts == ["head\n row\n", "why", "picture", "end"]
    assert packets[0].text == "head"


def test_two_runs_on_two_machines_have_one_normal_form() -> None:
    here = load("run_labs").normalised(noisy(3, "aaaa", "12:00", "here"))
    assert here == load("run_labs").normalised(noisy(7, "bbbb", "13:00", "there"))
    assert here == load("run_labs").normalised(here)


def measured_lab(seconds: str, picture: str) -> NotebookNode:
    """Return a lab as a run left it: a measured number, and a picture."""
    v4 = load("nbformat").v4
    shown = [v4.new_output("stream", text=f"measured {seconds} s\n"), v4.new_output("display_data", data={"image/png": picture})]
    lab = v4.new_notebook(cells=[v4.new_code_cell("run", execution_count=1, outputs=shown)])
    lab.cells[0].id = "cell"
    return lab


def test_a_measured_number_stays_only_beside_the_picture_of_its_run() -> None:
    stored = measured_lab("1.25", "old\n")
    assert "measured 1.25 s" in load("run_labs").stored_text(measured_lab("9.5", "old\n"), stored)
    assert "measured 9.5 s" in load("run_labs").stored_text(measured_lab("9.5", "new\n"), stored)


def test_the_normal_form_keeps_what_is_compared_and_counts_from_one() -> None:
    lab = load("run_labs").normalised(noisy(3, "aaaa", "12:00", "here"))
    load("nbformat").validate(lab)
    first, second = code_cells(lab)
    assert [output.output_type for output in first.outputs] == ["stream", "execute_result"]
    assert first.outputs[0].text == "one\ntwo\n"
    assert first.outputs[1].data == {"text/plain": "<Explorer>"}
    assert first.metadata == {"tags": ["bet"]}
    assert lab.cells[0].metadata == {"jp-MarkdownHeadingCollapsed": True}
    assert (first.execution_count, first.outputs[1].execution_count, second.execution_count) == (1, 1, 2)
    assert second.outputs[0].traceback == ["Refused: why"]
    assert not {"aaaa", "12:00", "here"} & set(re.findall(r"[\w:]+", load("nbformat").writes(lab)))


def test_a_cell_that_never_ran_is_not_stored_as_run() -> None:
    lab = noisy(3, "aaaa", "12:00", "here")
    lab.cells[1].execution_count = None
    assert [cell.execution_count for cell in code_cells(load("run_labs").normalised(lab))] == [None, 1]
