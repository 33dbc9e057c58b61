"""Test what honest students do to their notebooks: it costs them no marks."""

from dataclasses import replace

import pytest
from cases import in_turn
from grading_worlds import World, cell, honest_cells, lab_spec

pytestmark = pytest.mark.needs("bwrap")
MAKESPAN = "5 * 3 + 10 * (3 + 5) + 5 * 5"  # the right answer to lab02.t2
RIGHT = {"lab02.t2": 2.0}
BUILT = {"lab02.t5": 6.0}
ORDER = """
def one_f_one_b(devices, microbatches):
    lines = []
    for d in range(devices):
        warmup = min(devices - 1 - d, microbatches)
        line = [f"{d}F{m}" for m in range(warmup)]
        for m in range(microbatches - warmup):
            line += [f"{d}F{warmup + m}", f"{d}B{m}"]
        line += [f"{d}B{m}" for m in range(microbatches - warmup, microbatches)]
        lines.append(" ".join(line))
    return lines
"""
ENDLESS = "while True: pass"
ANSWER = f'check("lab02.t2", {MAKESPAN})'
MINE, HANDED = f"my_makespan = {MAKESPAN}", 'check("lab02.t2", my_makespan)'
LINES = "[line_of(d, K, M) for d in range(K)]"
HAND_IN = 'check("lab02.t5", one_f_one_b)'
LINE = """
def line_of(d, devices, microbatches):
    warmup = min(devices - 1 - d, microbatches)
    forwards = [f"{d}F{m}" for m in range(microbatches)]
    backwards = [f"{d}B{m}" for m in range(microbatches)]
    line = forwards[:warmup]
    for forward, backward in zip(forwards[warmup:], backwards):
        line += [forward, backward]
    return " ".join(line + backwards[microbatches - warmup:])
"""
ANSWERS = {
    "a helper below its use": ["my_makespan = total(10)", f"def total(m): return {MAKESPAN}", HANDED],
    "a hand-in above its answer": [HANDED, MINE],
    "helper cells between": [
        "K, M = 6, 10",
        "print(K)",
        "K",
        MINE,
        "",
        "# a comment",
        HANDED,
    ],
    "a deleted check": [MINE],
    "a wrong version above": [
        'my_makespan = 80\ncheck("lab02.t2", my_makespan)',
        f"{MINE}\n{HANDED}",
    ],
    "an error below the hand-in": [
        f'my_makespan = {MAKESPAN}\ncheck("lab02.t2", my_makespan)\n1 / 0',
        "undefined_name",
        "raise ValueError",
    ],
    "a syntax error in another cell": ["def (:", ANSWER],
    "names in another alphabet": ["größe = 5 * 3  # Füllzeit, 待ち時間", f'Δt_総 = {MAKESPAN}\ncheck("lab02.t2", Δt_総)  # ☺'],
    "line ends of Windows": [f'my_makespan = (\r\n    {MAKESPAN}\r\n)\r\ncheck("lab02.t2", my_makespan)\r\n'],
    "magics of IPython": [
        "%matplotlib inline\n%load_ext autoreload\n!pip install x\nx = 3",
        f'%%time\nmy_makespan = {MAKESPAN}\ncheck("lab02.t2", my_makespan)',
        "check?\n?check\nbuild??",
        "%%bash\necho 1; for i in 1 2; do echo $i; done",
        "files = !ls\nhere = %pwd",
    ],
    "a magic in a loop": [f"my_makespan = 0\nif True:\n    %time my_makespan = {MAKESPAN}\n    !ls\n    my_makespan = {MAKESPAN}"],
    "a question mark below the answer": [f"my_makespan = {MAKESPAN}\nmy_makespan?", HANDED],
    "pictures": [
        "import matplotlib.pyplot as plt\nfrom matplotlib import pyplot, colors as c",
        "from hybridlab.widgets import Bet\nfrom hybridlab.plot import *",
        f'import pandas as pd\nmy_makespan = {MAKESPAN}\ncheck("lab02.t2", my_makespan)\nplt.plot([1, 2])',
        "from hybridlab import plot, simulate\nplot.timeline(simulate(build('1f1b', 2, 2), Costs(1, 2)))",
    ],
    "names that the lab imports": [f'check("lab02.t2", ({MAKESPAN}) * build("1f1b", 2, 1).microbatches)'],
    "the library by another name": [f'import hybridlab as hl\nhl.check("lab02.t2", {MAKESPAN})'],
    "the library whole": [f'import hybridlab\nhybridlab.check("lab02.t2", {MAKESPAN})'],
    "a part of the library": [f'from hybridlab.course.tasks import check\ncheck("lab02.t2", {MAKESPAN})'],
    "check by another name": [f'from hybridlab import check as prüfe, build\nprüfe("lab02.t2", {MAKESPAN})'],
    "everything that the library exports": [f'from hybridlab import *\ncheck("lab02.t2", {MAKESPAN} * build("1f1b", 2, 1).microbatches)'],
    "everything from the library": [f'from hybridlab import *\ncheck("lab02.t2", {MAKESPAN})\nprint(check("lab02.t2", {MAKESPAN}))'],
    "keywords": [f'check(key="lab02.t2", answer={MAKESPAN})'],
    "a seed": [f'check("lab02.t2", answer={MAKESPAN}, seed=None)'],
    "a name of one's own for check": [MINE, "check = my_makespan > 10"],
    "a number of numpy": [f'import numpy\ncheck("lab02.t2", numpy.int64({MAKESPAN}))'],
    "a float of numpy": [f'import numpy as np\ncheck("lab02.t2", np.float32({MAKESPAN}))'],
    "an array without axes": [f'import numpy as np\ncheck("lab02.t2", np.array({MAKESPAN}))'],
    "a fraction": [f'from fractions import Fraction\ncheck("lab02.t2", Fraction({MAKESPAN}, 1))'],
    "a decimal number": [f'from decimal import Decimal\ncheck("lab02.t2", Decimal({MAKESPAN}))'],
    "a student": [f'from hybridlab import Student\nmine = Student("ana")\nmine("lab02.t2")\nmine.check("lab02.t2", {MAKESPAN})'],
    "input": ["name = input()", ANSWER],
    "top-level await": ["import asyncio\nawait asyncio.sleep(0)", ANSWER],
}
FUNCTIONS = {
    "as in the lab": [f"{ORDER}\n{HAND_IN}"],
    "a helper in another cell": [LINE, f"def one_f_one_b(K, M): return {LINES}\n{HAND_IN}"],
    "a helper below": [f"def one_f_one_b(K, M): return {LINES}\n{HAND_IN}", LINE],
    "a deleted check": [ORDER],
    "an earlier stub": ["def one_f_one_b(devices, microbatches): ...\n" + HAND_IN, f"{ORDER}\n{HAND_IN}"],
    "a later stub": [f"{ORDER}\n{HAND_IN}", "def one_f_one_b(devices, microbatches): ...\n" + HAND_IN],
    "a lambda": [LINE, 'check("lab02.t5", lambda devices, microbatches: [line_of(d, devices, microbatches) for d in range(devices)])'],
    "a generator function": [LINE, f"def one_f_one_b(K, M):\n    for d in range(K):\n        yield line_of(d, K, M)\n{HAND_IN}"],
    "a tuple": [LINE, f"def one_f_one_b(K, M): return tuple(line_of(d, K, M) for d in range(K))\n{HAND_IN}"],
    "a partial function": [
        "import functools",
        LINE,
        "def orders(sep, K, M): return sep.join(line_of(d, K, M) for d in range(K))",
        'check("lab02.t5", functools.partial(orders, "\\n"))',
    ],
    "a decorator": [
        "import functools\ndef timed(f):\n    @functools.wraps(f)\n    def inner(*given): return f(*given)\n    return inner",
        f"@timed\n@functools.lru_cache\n{ORDER.strip()}\n{HAND_IN}",
    ],
    "keywords and defaults": [
        LINE,
        f"def one_f_one_b(devices=2, microbatches=4, *, first=0, **more):\n"
        f"    return [line_of(d, devices, microbatches) for d in range(first, devices)]\n{HAND_IN}",
    ],
    "a class": [
        f"class Pipeline:\n    def __init__(self, K): self.K = K\n    def __call__(self, K, M): return {LINES}\n{LINE}",
        'check("lab02.t5", Pipeline(2))',
    ],
    "a method": [f"{LINE}\nclass Mine:\n    def orders(self, K, M): return {LINES}\ncheck('lab02.t5', Mine().orders)"],
    "recursion": [
        LINE,
        f"def one_f_one_b(K, M, d=0):\n    return [] if d == K else [line_of(d, K, M)] + one_f_one_b(K, M, d + 1)\n{HAND_IN}",
    ],
    "a dataclass and type hints": [
        "from __future__ import annotations\nfrom dataclasses import dataclass",
        "@dataclass\nclass Size:\n    K: int\n    M: Optional[int] = None",
        f"{LINE}\ndef one_f_one_b(devices: int, microbatches: int) -> list[str]:\n    size = Size(devices, microbatches)\n"
        f"    return [line_of(d, size.K, size.M) for d in range(size.K)]\n{HAND_IN}",
    ],
    "printing and asserts": [
        LINE,
        f"def one_f_one_b(K, M):\n    print(K, M); assert K > 0\n    return {LINES}\n{HAND_IN}",
    ],
    "text in place of lines": [LINE, f'def one_f_one_b(K, M): return "\\n".join(line_of(d, K, M) for d in range(K))\n{HAND_IN}'],
    "an import from the library beside it": [
        "from hybridlab import build, simulate, plot\nprint(build('1f1b', 2, 2))",
        f"{ORDER}\n{HAND_IN}",
    ],
    "a use of the library in its cell": [f"{ORDER}\n{HAND_IN}\nprint(simulate(build('1f1b', 2, 2), Costs(1, 2)))"],
    "a use of the library above it in its cell": [f"own = build('1f1b', 2, 2)\n{ORDER}\n{HAND_IN}"],
}


# what the quick tests try: some of each sort
QUICK = {"a hand-in above its answer", "a wrong version above", "a syntax error in another cell", "magics of IPython", "pictures"}
QUICK |= {"check by another name", "a later stub", "a generator function", "a use of the library above it in its cell"}


def an_answer_counts(world: World, name: str) -> None:
    assert world.earned([*map(cell, ANSWERS[name])], "lab02", RIGHT) == RIGHT


def a_function_counts(world: World, name: str) -> None:
    assert world.earned([*map(cell, FUNCTIONS[name])], "lab02", BUILT) == BUILT


@in_turn("name", [name for name in ANSWERS if name in QUICK])
def test_an_answer_counts_with(world: World, name: str) -> None:
    an_answer_counts(world, name)


@in_turn("name", [name for name in FUNCTIONS if name in QUICK])
def test_a_function_counts_with(world: World, name: str) -> None:
    a_function_counts(world, name)


@pytest.mark.slow
@in_turn("name", [name for name in ANSWERS if name not in QUICK])
def test_an_answer_counts_with_less_common_oddities(world: World, name: str) -> None:
    an_answer_counts(world, name)


@pytest.mark.slow
@in_turn("name", [name for name in FUNCTIONS if name not in QUICK])
def test_a_function_counts_with_less_common_oddities(world: World, name: str) -> None:
    a_function_counts(world, name)


def test_the_last_hand_in_counts_and_a_remark_says_so(world: World) -> None:
    cells = [cell(f"check('lab02.t2', {answer})") for answer in (MAKESPAN, "7", MAKESPAN)]
    (found,) = world.mark(cells, "lab02", RIGHT)
    assert found.points == 2
    assert "handed in 3 times" in found.remarks[0]
    assert "code cell 3" in found.remarks[0]
    assert world.earned(cells[:2], "lab02", RIGHT) == {}


def test_metadata_can_be_lost_changed_or_doubled(world: World) -> None:
    cells = honest_cells("lab02", [*RIGHT, *BUILT])
    lost, changed = ([replace(each, task=task) for each in cells] for task in ("", "lab02.t1"))
    for handed_in in ([*changed, *changed], lost[::-1]):
        assert world.earned(handed_in, "lab02", RIGHT | BUILT) == RIGHT | BUILT


def test_the_cells_of_the_whole_lab_may_stand_between(world: World) -> None:
    spec = lab_spec("lab02")
    cells = [cell(given.source) for given in spec.given]
    assert world.earned([*cells, *honest_cells("lab02", [*RIGHT, *BUILT])], "lab02") == RIGHT | BUILT


@pytest.mark.slow
def test_an_endless_cell_costs_only_itself(world: World) -> None:
    assert world.earned([cell(ENDLESS), cell(ANSWER), cell(ENDLESS)], "lab02", RIGHT) == RIGHT


def test_a_later_task_gets_the_part_that_the_lab_gives_and_not_an_own_one(world: World) -> None:
    """An own encode can be wrong, or have a change of its own: neither may cost the task that builds on it."""
    own = cell("def encode(values, block):\n    return np.zeros(len(values), np.int8), np.ones(1, np.float32)\n\ncheck('lab05.t1', encode)")
    assert world.earned([own, *honest_cells("lab05", ["lab05.t6"])], "lab05", ["lab05.t1", "lab05.t6"]) == {"lab05.t6": 4.0}


def test_an_error_names_the_answer_cell_and_the_line(world: World) -> None:
    (found,) = world.mark([cell("x = 1\nmy_makespan = 1 / 0\ncheck('lab02.t2', my_makespan)")], "lab02", RIGHT)
    assert found.messages == ("line 2 of the answer cell of lab02.t2 raises ZeroDivisionError",)


def test_a_lost_answer_cell_is_told(world: World) -> None:
    (found,) = world.mark([cell("x = 1")], "lab02", RIGHT)
    assert found.code == "nothing-handed-in"
    assert "no answer cell for lab02.t2" in found.messages[0]


def test_a_name_of_the_library_that_is_not_there_is_named_and_a_name_of_the_student_is_not(world: World) -> None:
    answer = "def simulate(orders, forward, backward, latency):\n    return {}(orders)\ncheck('lab02.t6', simulate)"
    for imported, name, named in (
        ("from hybridlab import Costs", "Costs", "hybridlab.Costs"),
        ("import MARKER", "MARKER.x", "a module that it imports"),
    ):
        (mark,) = world.mark([cell(f"{imported}\n{answer.format(name)}")], "lab02", ["lab02.t6"])
        assert mark.code == "not-there"
        assert f": {named} is not there when this task is graded: write your function with Python and numpy alone" in mark.messages[0]
