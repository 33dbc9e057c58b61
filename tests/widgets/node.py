"""Run scripts of the widgets in node, outside a browser: a test gives a program and data, and gets data back."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

WIDGETS = Path(__file__).resolve().parents[2] / "hybridlab/widgets"
NO_NODE = "node is not installed, and scripts of the widgets are run in it; make lint installs it"


def program() -> str | None:
    """Return the path of node: the system's, or the one that the Makefile installs beside Python."""
    beside = Path(__file__).resolve().parents[2] / ".venv/bin/node"
    return shutil.which("node") or (str(beside) if beside.exists() else None)


def run(folder: Path, code: str, data: Any, scripts: Path = WIDGETS) -> Any:
    """Return what ``answer(data)`` returns, a function that ``code`` defines. The code can import the scripts in ``scripts``.

    The scripts are copied to ``folder``, where a package.json says that they are modules, which old versions of node do not find out.
    """
    node = program()
    if node is None:
        pytest.skip(NO_NODE)
    shutil.copytree(scripts, folder, ignore=lambda _, names: [name for name in names if not name.endswith(".js")], dirs_exist_ok=True)
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "data.json").write_text(json.dumps(data), encoding="utf-8")
    ends = 'import { readFileSync, writeFileSync } from "node:fs";\n'
    ends += 'writeFileSync("out.json", JSON.stringify(answer(JSON.parse(readFileSync("data.json", "utf-8")))));\n'
    (folder / "main.js").write_text(f"{code}\n{ends}", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "NODE_OPTIONS"}
    ran = subprocess.run([node, "main.js"], cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr
    return json.loads((folder / "out.json").read_text(encoding="utf-8"))
