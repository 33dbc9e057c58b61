"""Run scripts of the widgets in node, outside a browser: a test gives a program and data, and gets data back.

Tests that do so have the mark ``needs("node")``.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

WIDGETS = Path(__file__).resolve().parents[2] / "hybridlab/widgets"
READ_AND_WRITE = 'import { readFileSync, writeFileSync } from "node:fs";\nconst data = JSON.parse(readFileSync("data.json", "utf-8"));\n'

Fault = tuple[str, str, str]  # a file, a text in it, and what stands there instead

# the answers of a script in one text, or the word "failed" if it raises an error
COMPARED = """
const told = (script, given) => { try { return JSON.stringify(script.answer([given])); } catch { return "failed"; } };
const right = data.map((given) => JSON.stringify(right_one.answer([given])));
const unnoticed = faulty.filter((script) => data.every((given, place) => told(script, given) === right[place]));
writeFileSync("out.json", JSON.stringify(unnoticed.map((script) => faulty.indexOf(script))));
"""


def program() -> str | None:
    """Return the path of node: the system's, or the one that the Makefile installs beside Python."""
    beside = Path(__file__).resolve().parents[2] / ".venv/bin/node"
    return shutil.which("node") or (str(beside) if beside.exists() else None)


def run(folder: Path, code: str, data: Any, scripts: Path = WIDGETS) -> Any:
    """Return what ``answer(data)`` returns, a function that ``code`` defines. The code can import the scripts in ``scripts``."""
    copied(scripts, folder, code)
    writes = 'writeFileSync("out.json", JSON.stringify(answer(data)));'
    return started(folder, f'import {{ answer }} from "./program.js";\n{READ_AND_WRITE}{writes}', data)


def unnoticed(folder: Path, code: str, cases: Sequence[Any], faults: Iterable[Fault], scripts: Path = WIDGETS) -> list[Fault]:
    """Return the faults with which ``answer([case])`` is the same for every case as without them; all run in one process.

    A script that fails with a fault has noticed it.
    """
    listed = list(faults)
    for place, (file, right, wrong) in enumerate(listed):
        copied(scripts, folder / str(place), code)
        text = (scripts / file).read_text(encoding="utf-8")
        assert right in text, f"{right!r} is not in {file}"
        (folder / str(place) / file).write_text(text.replace(right, wrong), encoding="utf-8")
    copied(scripts, folder / "right", code)
    imports = ['import * as right_one from "./right/program.js";']
    imports += [f'import * as faulty{place} from "./{place}/program.js";' for place in range(len(listed))]
    every = ", ".join(f"faulty{place}" for place in range(len(listed)))
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    found = started(folder, "\n".join([*imports, READ_AND_WRITE, f"const faulty = [{every}];", COMPARED]), cases)
    return [listed[place] for place in found]


def copied(scripts: Path, folder: Path, code: str) -> None:
    """Copy the scripts and write the program beside them.

    A package.json says that they are modules, which old versions of node do not find out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for script in scripts.glob("*.js"):
        shutil.copyfile(script, folder / script.name)
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "program.js").write_text(f"{code}\nexport {{ answer }};\n", encoding="utf-8")


def started(folder: Path, main: str, data: Any) -> Any:
    """Run a program in a folder, where it reads its data and writes its answer."""
    node = program()
    assert node is not None, "node is not installed: this test lacks its mark"
    (folder / "data.json").write_text(json.dumps(data), encoding="utf-8")
    (folder / "main.js").write_text(main, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "NODE_OPTIONS"}
    ran = subprocess.run([node, "main.js"], cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr
    return json.loads((folder / "out.json").read_text(encoding="utf-8"))
