"""Lab 7 trains with the functions that a student has built in labs 2, 4, 5 and 7, and says where they come from."""

import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn
from solutions import lab_cells

from hybridlab.course.tasks import check

STEPS = 2
SECTION = "## 7. Training with your own parts"
# What a student could have kept, as short as possible; a file holds the functions that its function needs.
ORDERS = """
def one_f_one_b(devices, microbatches):
    lines = []
    for device in range(devices):
        ahead = min(devices - 1 - device, microbatches)
        line = [f"{device}F{microbatch}" for microbatch in range(ahead)]
        for microbatch in range(microbatches):
            line += [f"{device}F{microbatch + ahead}"] * (microbatch + ahead < microbatches) + [f"{device}B{microbatch}"]
        lines.append(" ".join(line))
    return lines
"""
RING = """
import numpy as np

def ring_all_reduce(values):
    ranks = len(values)
    chunks = [part.copy() for part in np.array_split(values, ranks, axis=1)]
    messages = []
    for step in range(2 * (ranks - 1)):
        shift = step if step < ranks - 1 else step - ranks
        sent = [chunks[(rank - shift) % ranks][rank].copy() for rank in range(ranks)]
        for rank in range(ranks):
            chunk, to = (rank - shift) % ranks, (rank + 1) % ranks
            chunks[chunk][to] = sent[rank] + (chunks[chunk][to] if step < ranks - 1 else 0)
        messages.append(sent)
    return np.concatenate(chunks, axis=1) / ranks, messages
"""
CODE = """
import numpy as np

def encode(values, block):
    starts = np.arange(0, values.size, block)
    scales = (np.maximum.reduceat(np.abs(values), starts) / 127).astype(np.float32)
    widths = np.repeat(np.where(scales > 0, scales, 1), block)[: values.size]
    return np.clip(np.round(values / widths), -127, 127).astype(np.int8), scales

def decode(codes, scales, block):
    return codes * np.repeat(scales.astype(float), block)[: codes.size]

def with_feedback(gradient, residual, block):
    wanted = gradient + residual
    sent = decode(*encode(wanted, block), block)
    return sent, wanted - sent
"""
(EXECUTOR,) = (
    cell.source.partition("\n\ncheck")[0].replace("def solution", "def run_pipeline")
    for cell in lab_cells("lab07")
    if "solution" in cell.tags and '"lab07.t1"' in cell.source
)
PARTS = {
    "one_f_one_b": ORDERS,
    "ring_all_reduce": RING,
    "encode": CODE,
    "decode": CODE,
    "with_feedback": CODE,
    "run_pipeline": EXECUTOR,
}


@pytest.fixture(scope="module")
def lab() -> dict[str, Any]:
    """The names that the section of the lab uses, as its earlier cells define them; a few steps in place of a hundred."""
    from hybridlab.training import Network, train_alone

    (imports,) = (cell.source for cell in lab_cells("lab07") if "import Bet" in cell.source)
    names: dict[str, Any] = {}
    exec(imports, names)  # noqa: S102 - a cell of our own lab
    names["network"] = Network()
    names["beside"] = train_alone(steps=STEPS)
    names["runs"] = {("published ring", "by label"): names["beside"]}  # only drawn and printed
    return names


def section() -> Iterator[str]:
    """Yield the cells of the section, after the lines of section 3 that load the executor and set the training."""
    inside = False
    for cell in lab_cells("lab07"):
        if cell.source.startswith("my_executor = part("):
            yield cell.source.partition("hybrid = ")[0].replace('"steps": 100', f'"steps": {STEPS}')
        elif cell.kind == "markdown" and cell.source.startswith("## "):
            inside = cell.source.startswith(SECTION)
        elif inside and cell.kind == "code":
            few = cell.source.replace(".reshape(-1, 10).mean(axis=1)", "")
            yield few.replace("range(10, 101, 10)", f"range({STEPS})")


def printed(lab: dict[str, Any], folder: Path, parts: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """What the section prints with these parts: the lines about the parts, and those about the runs."""
    for name, source in parts.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    monkeypatch.setenv("HYBRIDLAB_PARTS", str(folder))
    output, names = io.StringIO(), dict(lab)
    with redirect_stdout(output):
        for source in section():
            exec(source, names)  # noqa: S102 - cells of our own lab
    lines = list(filter(None, output.getvalue().splitlines()))
    return lines[: len(PARTS)], lines[len(PARTS) :]


def exact(line: str) -> bool:
    """Return whether a run has the weights of one device: its last word is their relative difference."""
    return line.split()[-1] in ("0", "1e-6")


def test_without_parts_the_lab_trains_with_those_of_the_library_and_says_so(
    lab: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about, runs = printed(lab, tmp_path, {}, monkeypatch)
    assert about == [f"{name}: the library's, because you have not built yours yet" for name in PARTS]
    assert [exact(line) for line in runs[1:4]] == [True, False, False]


def test_the_lab_trains_with_the_parts_of_the_student(expected: tuple[list[str], list[str]]) -> None:
    about, runs = expected
    assert [line.rpartition("/")[::2] for line in about] == [
        (f"{name}: your own, from {about[0].split(' from ')[1].rpartition('/')[0]}", f"{name}.py") for name in PARTS
    ]
    assert [exact(line) for line in runs[1:4]] == [True, False, False]
    assert runs[1].split()[2] == runs[4].split()[2], "the first run has the loss of one device"


@pytest.fixture(scope="module")
def expected(lab: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """What the section prints with right parts of a student."""
    with pytest.MonkeyPatch.context() as patch:
        return printed(lab, tmp_path_factory.mktemp("right"), PARTS, patch)


@in_turn(
    "name, right, wrong, run",
    [
        ("one_f_one_b", "{device}B{microbatch}", "{device}B{microbatches - 1 - microbatch}", None),
        ("ring_all_reduce", "axis=1) / ranks", "axis=1)", 0),
        ("ring_all_reduce", "step - ranks", "step - ranks + 1", 0),
        ("run_pipeline", "sums[stage] + gradient", "gradient", 0),
        ("encode", "/ 127", "/ 1", 1),
        ("decode", "codes * ", "2 * codes * ", 1),
        ("with_feedback", "sent, wanted - sent", "0 * sent, wanted - sent", 2),
    ],
)
def test_a_wrong_part_of_the_student_gives_another_result(
    lab: dict[str, Any],
    expected: tuple[list[str], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    right: str,
    wrong: str,
    run: int | None,
) -> None:
    """This shows that the part is really used. A wrong order cannot run at all."""
    assert right in PARTS[name]
    folder = tmp_path / f"{name} with {right}".replace("/", "over")
    folder.mkdir()
    planted = {**PARTS, name: PARTS[name].replace(right, wrong)}
    if run is None:
        with pytest.raises(Exception, match="0B"):
            printed(lab, folder, planted, monkeypatch)
        return
    _, found = printed(lab, folder, planted, monkeypatch)
    assert found[1 + run] != expected[1][1 + run]
    assert found[4] == expected[1][4], "one device uses no part"


def test_the_executor_that_passes_is_kept_and_the_lab_finds_it(
    lab: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRIDLAB_PARTS", str(tmp_path))
    path = tmp_path / "cell.py"
    path.write_text(EXECUTOR, encoding="utf-8")
    names: dict[str, Any] = {"__name__": "cell"}
    exec(compile(EXECUTOR, str(path), "exec"), names)  # noqa: S102 - a cell of our own lab
    assert check("lab07.t1", names["run_pipeline"]).passed
    assert (tmp_path / "run_pipeline.py").is_file()
    about, runs = printed(lab, tmp_path, {}, monkeypatch)
    assert "your own" in about[-1]
    assert exact(runs[1])
