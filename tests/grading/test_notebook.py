"""Test how notebooks that were handed in are read: whatever they hold, they become data or an error in a sentence."""

import bz2
import hashlib
import io
import json
import os
import socket
import struct
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from cases import in_turn, refusal
from grading_worlds import in_time
from hypothesis import given
from hypothesis import strategies as st
from notebooks import LABS
from profiles import examples

from hybridlab import HybridLabError
from hybridlab.course.grading import notebook
from hybridlab.course.grading.notebook import MOST_BYTES, CodeCell, Submission, read_submission

CODES = {"not-found", "link", "not-a-file", "unreadable", "too-large", "not-text", "not-json", "not-a-notebook"}
CODES |= {"empty-notebook", "newer-notebook", "zip"}


def code(source: Any = "a = 1", **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None, **more}


def text_of(*cells: Any, **more: Any) -> str:
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells), **more})


def stored(folder: Path, content: str | bytes, name: str = "lab02.ipynb") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return path


def zipped(*files: tuple[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return data.getvalue()


# What is read


def test_a_notebook_becomes_its_code_and_its_metadata(tmp_path: Path) -> None:
    own = {"hybridlab": {"student": "ana", "course": "nn", "lab": "lab02"}}
    answer = code(["x = 1\n", "check('lab02.t2', x)"], id="a7", metadata={"hybridlab": {"role": "answer", "task": "lab02.t2"}})
    content = text_of({"cell_type": "markdown", "source": "# T", "metadata": {}}, code("import numpy"), code(" \n"), answer, metadata=own)
    cells = (CodeCell("import numpy"), CodeCell("x = 1\ncheck('lab02.t2', x)", "lab02.t2", "a7"))
    digest = hashlib.sha256(content.encode()).hexdigest()
    assert read_submission(stored(tmp_path, content)) == Submission("ana", "nn", "lab02", cells, digest)


@in_turn("path", sorted(LABS.glob("*.ipynb")))
def test_every_lab_can_be_read(path: Path) -> None:
    read = read_submission(path)
    wanted = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.source for cell in read.cells] == wanted
    assert (read.student, read.course, read.lab) == ("", "", "")


def sources(path: Path) -> list[str]:
    return [cell.source for cell in read_submission(path).cells]


def test_honest_oddities_are_read(tmp_path: Path) -> None:
    plain = text_of(code("a = 'é'\r\nb = 2\rc"))
    wanted = ["a = 'é'\nb = 2\nc"]
    assert sources(stored(tmp_path, plain)) == wanted
    assert sources(stored(tmp_path, b"\xef\xbb\xbf" + plain.encode())) == wanted, "a byte order mark"
    assert sources(stored(tmp_path, plain.replace(", ", ",\r\n"))) == wanted
    assert sources(stored(tmp_path, plain, "Lösung 李.ipynb")) == wanted
    assert sources(stored(tmp_path, text_of(code(), nbformat_minor=0))) == ["a = 1"]
    assert sources(stored(tmp_path, text_of(code(), nbformat_minor=99))) == ["a = 1"]
    assert sources(stored(tmp_path, text_of(code(), extra=float("nan")))) == ["a = 1"]
    assert sources(stored(tmp_path, '{"cells": 3, ' + text_of(code())[1:])) == ["a = 1"], "the last of two equal keys counts"


def test_an_old_notebook_has_the_cells_that_nbformat_finds(tmp_path: Path) -> None:
    worksheets = [
        {"metadata": {}, "cells": [
            {"cell_type": "heading", "level": 1, "source": "T", "metadata": {}},
            {"cell_type": "code", "input": ["a = 1\n", "b"], "language": "python", "outputs": [], "metadata": {}, "collapsed": False},
        ]},
        {"metadata": {}, "cells": [{"cell_type": "code", "input": "c", "language": "python", "outputs": [], "metadata": {}}]},
    ]  # fmt: skip
    content = json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}, "worksheets": worksheets})
    one_sheet = json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}, "worksheets": worksheets[:1]})
    converted = nbformat.reads(one_sheet, as_version=4)
    assert sources(stored(tmp_path, one_sheet)) == [cell.source for cell in converted.cells if cell.cell_type == "code"]
    assert sources(stored(tmp_path, content)) == ["a = 1\nb", "c"]


BAD_CELLS = [None, 3, "code", [], {}, {"cell_type": "code"}, {"cell_type": ["code"], "source": "x"}, {"cell_type": "raw", "source": "x"}]
BAD_CELLS += [code(3), code(None), code({"a": 1}), code(["a", 3]), code([["a"]]), code([])]


def test_damaged_cells_count_as_empty(tmp_path: Path) -> None:
    assert sources(stored(tmp_path, text_of(*BAD_CELLS, code("good"), *BAD_CELLS))) == ["good"]


@in_turn("task", [3, None, ["lab02.t1"], {"a": 1}, "x" * 201, True, " ", "\u3000\n"])
def test_metadata_that_are_no_short_text_count_as_absent(task: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    cells = [code(metadata={"hybridlab": {"task": task}}, id=task), code(metadata={"hybridlab": task}), code(metadata=task)]
    for about in ({"hybridlab": {"student": task, "course": task, "lab": task}}, {"hybridlab": task}, task):
        read = read_submission(stored(tmp_path_factory.mktemp("odd"), text_of(*cells, metadata=about)))
        assert (read.student, read.course, read.lab) == ("", "", "")
        assert read.cells == 3 * (CodeCell("a = 1"),)


def test_half_a_pair_of_surrogates_is_replaced(tmp_path: Path) -> None:
    cells = [code('"\ud800"', metadata={"hybridlab": {"task": "\udfff"}}, id="\ud83d"), code(['"\ud83d', '\ude00"'])]
    read = read_submission(stored(tmp_path, text_of(*cells, metadata={"hybridlab": {"student": "an\udc00a"}})))
    assert read.cells == (CodeCell('"\ufffd"', "\ufffd", "\ufffd"), CodeCell('"\U0001f600"'))
    assert read.student == "an\ufffda"
    str(read).encode()


# What is refused


REFUSED: list[tuple[str | bytes, str, str]] = [
    ("", "empty-notebook", "empty"),
    (" \n", "empty-notebook", "empty"),
    (text_of(), "empty-notebook", "no code"),
    (text_of(code(""), {"cell_type": "markdown", "source": "x"}), "empty-notebook", "no code"),
    ("print(1)", "not-json", "line 1"),
    (text_of(code())[:-1], "not-json", "damaged"),
    ("[" * 100_000, "not-json", "damaged"),
    ("[" * 100_000 + "]" * 100_000, "not-json", "damaged"),
    ('{"a":' * 100_000 + "1" + "}" * 100_000, "not-json", "damaged"),
    (f'{{"nbformat": 4, "cells": [{"1" * 5000}]}}', "not-json", "damaged"),
    (text_of(code()).encode("utf-16"), "not-text", "UTF-16"),
    (text_of(code()).encode("utf-32"), "not-text", "UTF-16"),
    (text_of(code()).encode("utf-16-le"), "not-json", "damaged"),
    (b"\x89PNG\r\n\x1a\n", "not-text", "no text"),
    ("a = 'é'".encode("latin-1"), "not-text", "no text"),
    ("[]", "not-a-notebook", "no notebook"),
    ("3", "not-a-notebook", "no notebook"),
    ("NaN", "not-a-notebook", "no notebook"),
    ("{}", "not-a-notebook", "no notebook"),
    ('{"cells": []}', "not-a-notebook", "no notebook"),
    (text_of(code(), nbformat=True), "not-a-notebook", "no notebook"),
    (text_of(code(), nbformat="4"), "not-a-notebook", "no notebook"),
    (text_of(code(), nbformat=4.0), "not-a-notebook", "no notebook"),
    (text_of(code(), nbformat=1), "not-a-notebook", "no notebook"),
    (text_of(code(), nbformat=-(10**400)), "not-a-notebook", "no notebook"),
    (text_of(code(), nbformat=5), "newer-notebook", "version 4"),
    (text_of(code(), nbformat=10**4000), "newer-notebook", "version 4"),
    ('{"nbformat": 4}', "not-a-notebook", "list of cells"),
    ('{"nbformat": 4, "cells": {"0": 1}}', "not-a-notebook", "list of cells"),
    ('{"nbformat": 3, "worksheets": 7}', "not-a-notebook", "list of cells"),
    ('{"nbformat": 3, "worksheets": [7, {"cells": 7}]}', "not-a-notebook", "list of cells"),
    (text_of(*[code("1")] * 2001), "too-large", "2,000 code cells"),
    (text_of(code("x" * 600_000), code("x" * 600_000)), "too-large", "1,000,000"),
    (b"x" * (MOST_BYTES + 1), "too-large", "shorten long texts"),
    (text_of({"cell_type": "markdown", "source": "x" * MOST_BYTES}, code(outputs=[])), "too-large", "without its outputs"),
    (text_of(code("x" * 900_000)) + " " * MOST_BYTES, "too-large", "at most 5 MB"),
    (text_of(code(outputs=[[]] * 2_000_000)), "too-large", "shorten"),
    (b'{"outputs": ["' + b'\\"' * MOST_BYTES, "too-large", "without its outputs"),
]  # fmt: skip


@in_turn("content, error, word", REFUSED)
def test_what_is_no_notebook_gets_a_sentence(content: str | bytes, error: str, word: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = stored(tmp_path_factory.mktemp("bad"), content)
    with refusal(error, "'lab02.ipynb'", word):
        read_submission(path)


def test_limits_are_those_that_are_told(tmp_path: Path) -> None:
    assert len(sources(stored(tmp_path, text_of(*[code("1")] * 2000)))) == 2000
    assert len(sources(stored(tmp_path, text_of(code("x" * 1_000_000))))[0]) == 1_000_000
    largest = text_of(code()).encode().ljust(MOST_BYTES)
    assert sources(stored(tmp_path, largest)) == ["a = 1"]


def test_a_notebook_with_large_outputs_is_read_without_them(tmp_path: Path) -> None:
    large = [']}\\"outputs": [' + "x" * MOST_BYTES, {"data": {"outputs": [[1], {"a": "}"}]}}]
    told = "outputs = []  # outputs: [\nprint('\"outputs\": [{')"
    cells = [code(told, outputs=large, id="a7"), {"cell_type": "markdown", "source": "T", "attachments": {"a.png": {"image/png": "x"}}}]
    content = text_of(*cells, code("b = 2", outputs=[]), metadata={"widgets": {"state": large}, "hybridlab": {"student": "ana"}})
    for name, data in (
        ("a.ipynb", content),
        ("b.zip", zipped(("a.ipynb", content))),
        ("c.ipynb", json.dumps(json.loads(content), indent=1)),
    ):
        path = stored(tmp_path, data, name)
        read = read_submission(path)
        assert (read.student, read.cells) == ("ana", (CodeCell(told, id="a7"), CodeCell("b = 2")))
        assert read.digest == hashlib.sha256(path.read_bytes()).hexdigest()


# Other things than files


def test_links_are_not_followed_but_folders_may_be_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path = stored(tmp_path / "real", text_of(code()))
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "link.ipynb").symlink_to(path)
    (tmp_path / "dangling.ipynb").symlink_to("nowhere")
    (tmp_path / "secret.ipynb").symlink_to("/etc/passwd")
    assert sources(tmp_path / "folder" / "lab02.ipynb") == ["a = 1"]
    for name in ("real/link.ipynb", "dangling.ipynb", "secret.ipynb"):
        with refusal("link", Path(name).name):
            read_submission(tmp_path / name)


def test_a_link_that_is_put_there_between_two_looks_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(tmp_path, text_of(code()))
    (tmp_path / "link.ipynb").symlink_to(path)
    monkeypatch.setattr(os, "lstat", lambda _: path.stat())
    with refusal("link", "link.ipynb"):
        read_submission(tmp_path / "link.ipynb")


def test_pipes_devices_sockets_and_folders_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ipynb")
    (tmp_path / "folder.ipynb").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket.ipynb"))
        for path in (tmp_path / "pipe.ipynb", tmp_path / "folder.ipynb", tmp_path / "socket.ipynb", Path("/dev/zero"), Path("/dev/tty")):
            with refusal("not-a-file", path.name):
                in_time(lambda path=path: read_submission(path))


def test_a_pipe_that_is_put_there_between_two_looks_does_not_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.ipynb")
    usual = stored(tmp_path, "x").stat()
    monkeypatch.setattr(os, "lstat", lambda _: usual)
    with refusal("not-a-file", "pipe.ipynb"):
        in_time(lambda: read_submission(tmp_path / "pipe.ipynb"))


UNOPENED = [("none.ipynb", "not-found"), ("a\x00b.ipynb", "not-found"), ("x" * 300, "unreadable"), ("file/below.ipynb", "unreadable")]


@in_turn("name, error", UNOPENED)
def test_what_cannot_be_opened_gets_a_sentence(name: str, error: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("gone")
    (folder / "file").write_text("x")
    with refusal(error):
        read_submission(folder / name)


def test_no_more_than_the_limit_is_read(tmp_path: Path) -> None:
    with (tmp_path / "sparse.ipynb").open("wb") as file:
        file.truncate(10**11)
    with refusal("too-large", "sparse.ipynb", "100 MB"):
        read_submission(tmp_path / "sparse.ipynb")


# Zip files


def test_a_zip_with_one_notebook_is_read(tmp_path: Path) -> None:
    good = text_of(code())
    beside = ["__MACOSX/._lab02.ipynb", "a/.ipynb_checkpoints/lab02.ipynb", "a/._lab02.ipynb", "a/data.csv", "b/"]
    others = [(name, "") for name in beside]
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        data = zipped(("../../etc/Lab02.IPYNB", good), *others, method=method)
        path = stored(tmp_path, data, "lab02.ZIP")
        assert sources(path) == ["a = 1"]
        assert read_submission(path).digest == hashlib.sha256(data).hexdigest()
    assert [each.name for each in tmp_path.iterdir()] == ["lab02.ZIP"], "nothing is unpacked"


def with_password() -> bytes:
    """Return a zip whose entry says that it needs a password."""
    data = bytearray(zipped(("a.ipynb", text_of(code()))))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def smaller_than_it_is() -> bytes:
    """Return a zip bomb whose directory tells a size of 10 bytes."""
    data = bytearray(zipped(("a.ipynb", b" " * 20_000_000)))
    for at, offset in ((data.index(b"PK\x03\x04"), 22), (data.index(b"PK\x01\x02"), 24)):
        data[at + offset : at + offset + 4] = struct.pack("<I", 10)
    return bytes(data)


GOOD = text_of(code())
ZIPS: list[tuple[bytes, str, str]] = [
    (b"no zip", "zip", "damaged"),
    (b"", "zip", "damaged"),
    (zipped(), "zip", "no notebook"),
    (zipped(("a.txt", "x")), "zip", "no notebook"),
    (zipped(("a.ipynb", GOOD), ("b.ipynb", GOOD)), "zip", "2 notebooks"),
    (zipped(("a.ipynb", b"x" * 20_000_000)), "too-large", "at most 5 MB"),
    (smaller_than_it_is(), "zip", "damaged"),
    (with_password(), "zip", "password"),
    (zipped(("a.ipynb", GOOD))[:-30], "zip", "damaged"),
    (zipped(("a.ipynb", GOOD), method=zipfile.ZIP_BZIP2), "zip", "unusual"),
    (zipped(("a.ipynb", GOOD), method=zipfile.ZIP_LZMA), "zip", "unusual"),
    (zipped(("a.ipynb", "x")), "not-json", "damaged"),
    (zipped(("a.ipynb", zipped(("b.ipynb", GOOD)))), "not-text", "no text"),
    (bz2.compress(GOOD.encode()), "zip", "damaged"),
]


@in_turn("data, error, word", ZIPS)
def test_a_zip_that_is_not_one_notebook_is_refused(data: bytes, error: str, word: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = stored(tmp_path_factory.mktemp("zips"), data, "a.zip")
    with refusal(error, "'a.zip'", word):
        read_submission(path)


def test_a_bomb_is_unpacked_up_to_the_limit_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    read = zipfile.ZipExtFile.read

    def counted_read(self: zipfile.ZipExtFile, n: int | None = -1) -> bytes:
        data = read(self, n)
        asked.append(len(data))
        return data

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted_read)
    monkeypatch.setattr(notebook, "MOST_TO_READ", 10_000_000)
    with refusal("too-large", "10 MB"):
        read_submission(stored(tmp_path, zipped(("a.ipynb", b" " * 20_000_000)), "a.zip"))
    assert asked == [10_000_001]


# Anything at all


def outcome_of(content: bytes, folder: Path, name: str) -> None:
    """Read what is stored, and check that it becomes data that can be written, or an error with a known code."""
    path = stored(folder, content, name)
    try:
        read = read_submission(path)
    except HybridLabError as error:
        code, sentence = error.code, str(error)
    else:
        code, sentence = "", repr(read)
        assert read.cells
        assert all(isinstance(each, str) for cell in read.cells for each in (cell.source, cell.task, cell.id))
        "".join([read.student, read.course, read.lab, *(cell.source for cell in read.cells)]).encode()
    assert code in {"", *CODES}
    assert "\n" not in sentence
    sentence.encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("anything")


texts = st.text(alphabet=st.characters(), max_size=8)
KEYS = ["cells", "nbformat", "metadata", "hybridlab", "task", "student", "source", "input", "cell_type", "worksheets", "id"]
words = st.sampled_from(KEYS)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.sampled_from(["code", "markdown", 3, 4]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | texts, inner, max_size=5),
    max_leaves=20,
)
parts_of_a_cell = {"cell_type": st.just("code") | values, "source": values, "metadata": values}
cells_like = st.fixed_dictionaries(parts_of_a_cell, optional={"id": values}) | values
notebooks_like = st.fixed_dictionaries(
    {"nbformat": st.sampled_from([2, 3, 4, 5]) | values},
    optional={
        "cells": st.lists(cells_like, max_size=4) | values,
        "worksheets": st.lists(st.fixed_dictionaries({"cells": st.lists(cells_like, max_size=3)}) | values, max_size=3) | values,
        "metadata": st.fixed_dictionaries({"hybridlab": values}) | values,
    },
)


@examples(400)
@given(content=st.binary(max_size=200), name=st.sampled_from(["a.ipynb", "a.zip"]))
def test_any_bytes_are_read_or_refused(content: bytes, name: str, folder: Path) -> None:
    outcome_of(content, folder, name)


@examples(800)
@given(content=notebooks_like | values)
def test_any_json_is_read_or_refused(content: Any, folder: Path) -> None:
    outcome_of(json.dumps(content).encode(), folder, "a.ipynb")
    try:
        raw = json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except RecursionError:
        return
    outcome_of(raw, folder, "a.ipynb")


@examples(800)
@given(data=st.data(), several=st.booleans())
def test_any_damaged_zip_is_read_or_refused(data: st.DataObject, several: bool, folder: Path) -> None:
    archive = bytearray(zipped(("a.ipynb", GOOD), *([("b.txt", "x")] if several else [])))
    for _ in range(data.draw(st.integers(1, 6))):
        archive[data.draw(st.integers(0, len(archive) - 1))] = data.draw(st.integers(0, 255))
    outcome_of(bytes(archive[: data.draw(st.integers(0, len(archive)))] if data.draw(st.booleans()) else archive), folder, "a.zip")


def test_names_in_sentences_stay_short_and_on_one_line(tmp_path: Path) -> None:
    for name in ("a\n::error::b.ipynb", "x" * 200 + ".ipynb"):
        with pytest.raises(HybridLabError) as caught:
            read_submission(stored(tmp_path, "x", name))
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 250
