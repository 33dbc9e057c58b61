"""Functions of students in a real kernel: the line of a cell that raises, the stop button, the part that a passed check keeps."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

from hybridlab.course.parts import ELSEWHERE

Run = Callable[..., str]
SECONDS = 120  # far more than any cell needs


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Return a function that runs a cell in a kernel and returns what it shows. It can stop the cell when it prints "begun"."""
    folder = tmp_path_factory.mktemp("notebooks")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(ELSEWHERE, raising=False)
        manager, client = start_new_kernel(cwd=str(folder))

    def run(source: str, stop: bool = False) -> str:
        shown: list[str] = []

        def hook(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                shown.append(content["text"])
                if stop and "begun" in content["text"]:
                    manager.interrupt_kernel()
            elif message["msg_type"] in ("execute_result", "display_data"):
                shown.append(content["data"]["text/plain"])
            elif message["msg_type"] == "error":
                shown.append("\n".join(content["traceback"]))

        client.execute_interactive(source, output_hook=hook, timeout=SECONDS, allow_stdin=False)
        return "".join(shown)

    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture
def cell(kernel: Run) -> Run:
    """Return the same function, with the names that all cells here use."""
    kernel("%reset -f\nfrom hybridlab import check, part\nimport numpy as np")
    return kernel


def test_an_endless_loop_can_be_stopped(cell: Run) -> None:
    shown = cell(
        "def one_f_one_b(devices, microbatches):\n"
        "    while devices == 1:\n"
        "        print('begun', flush=True)\n"
        "        while True: pass\n"
        "check('lab02.t5', one_f_one_b)",
        stop=True,
    )
    feedback = shown[shown.index("lab02.t5") :]
    assert feedback.startswith("lab02.t5: not yet\n  for 1 device and 1 microbatch: you have interrupted the function")
    assert "Traceback" not in shown


def test_the_line_of_the_cell_is_shown(cell: Run) -> None:
    shown = cell("def one_f_one_b(devices, microbatches):\n    lines = []\n    return lines[devices]\ncheck('lab02.t5', one_f_one_b)")
    assert "line 3 of your cell, `return lines[devices]`, raises" in " ".join(shown.split())


def test_a_passed_function_is_saved_beside_the_notebook_in_a_file_that_can_be_read_and_is_found_again(cell: Run) -> None:
    cell("def warm_up(device, devices, microbatches):\n    return int(np.minimum(devices - 1 - device, microbatches))")
    shown = cell(
        "def one_f_one_b(devices, microbatches):\n"
        "    lines = []\n"
        "    for d in range(devices):\n"
        "        ahead = warm_up(d, devices, microbatches)\n"
        "        line = [f'{d}F{mb}' for mb in range(ahead)]\n"
        "        for mb in range(microbatches):\n"
        "            line += [f'{d}F{mb + ahead}'] * (mb + ahead < microbatches) + [f'{d}B{mb}']\n"
        "        lines.append(' '.join(line))\n"
        "    return lines\n"
        "check('lab02.t5', one_f_one_b)"
    )
    assert "saved as my_parts/one_f_one_b.py" in " ".join(shown.split())
    shown = cell("%reset -f\nfrom hybridlab import part\nmine = part('one_f_one_b', otherwise=None)\nprint(mine(1, 1))\nmine")
    assert shown.startswith("['0F0 0B0']\n")
    assert "your own, from my_parts/one_f_one_b.py" in shown
    source = cell("from pathlib import Path\nprint(Path('my_parts/one_f_one_b.py').read_text())")
    assert source.index("import numpy as np") < source.index("def warm_up") < source.index("def one_f_one_b")
