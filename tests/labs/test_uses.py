"""A function that is graded without the library passes in no notebook if it uses the library."""

import re
from typing import Any

from cases import in_turn
from grading_worlds import lab_spec
from notebooks import cells_of

from hybridlab import Student, check
from hybridlab.course.checking.uses import library_in
from hybridlab.course.grading.labs import reference
from hybridlab.course.tasks import TASKS

CELLS = """
import functools
import math
import hybridlab as lab
import numpy as np
from hybridlab import Costs, build, part, simulate
from hybridlab import check as checked
costs = Costs(forward=1, backward=2)
saved = part("clock", otherwise=simulate)
unsaved = part("simulate", otherwise=simulate)
table = {"all": [simulate]}
def clock(orders):
    return simulate(orders).makespan
def longer(orders):
    return 2 * clock(orders)
class Helper:
    start = simulate
    def __init__(self): self.rates = np.zeros(3)
    def run(self, orders): return longer(orders)
class Own:
    def __init__(self): self.rates = np.zeros(3)
    def __call__(self, orders): return self.rates
def outer(run):
    def inner(orders): return run(orders) if orders else inner(orders)
    return inner
@functools.cache
def remembered(orders): return clock(orders)
"""


def in_notebook(answer: str, cells: str = CELLS) -> Any:
    """Return the value of ``answer``, in a notebook in which these cells have run."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(cells, names)  # noqa: S102 - source of this test
    exec(answer if answer.startswith(("def", "import")) else f"f = {answer}", names)  # noqa: S102
    return names["f"]


USED: list[tuple[str, tuple[str, ...]]] = [
    ("simulate", ("simulate",)),
    ("lambda orders: clock(orders)", ("clock", "simulate")),
    ("lambda orders: [longer(each) for each in orders]", ("longer", "clock", "simulate")),
    ("lambda orders: lab.build(orders)", ("lab",)),
    ("def f(orders):\n    from hybridlab import simulate as run\n    return run(orders)", ("simulate",)),
    ("def f(orders):\n    import hybridlab.costs\n    return 1", ("hybridlab.costs",)),
    ("lambda orders, run=simulate: run(orders)", ("run",)),
    ("lambda orders, *, run=[simulate]: run[0](orders)", ("run", "simulate")),
    ("lambda orders: costs", ("costs",)),
    ("lambda orders: table['all'][0](orders)", ("table", "simulate")),
    ("lambda orders: Helper().run(orders)", ("Helper", "start")),
    ("Helper().run", ("Helper", "start")),
    ("outer(simulate)", ("run",)),
    ("functools.partial(clock, 3)", ("simulate",)),
    ("lambda orders: remembered(orders)", ("remembered", "clock", "simulate")),
    ("lambda orders: unsaved(orders)", ("unsaved",)),
    # the grader has a saved function only if the same notebook hands it in; then what this function uses counts
    ("lambda orders: saved(orders)", ("saved", "simulate")),
    ("lambda orders: np.sum(orders) + math.ceil(len(orders))", ()),
    ("outer(len)", ()),
    ("Own()", ()),
    ("functools.partial(max, 3)", ()),
    ("def f(orders: Costs) -> Costs:\n    return orders", ()),
    ("def f(orders):\n    from hybridlab import check\n    return check", ()),
    ("3", ()),
]


@in_turn("answer, names", USED)
def test_what_a_function_uses_of_the_library_is_found(answer: str, names: tuple[str, ...]) -> None:
    assert library_in(in_notebook(answer)) == names


RIGHT = "def f(orders):\n    unused = {}\n    step = lambda op: ('F' in op) - ('I' not in op and 'F' not in op)\n"
RIGHT += "    return [max(np.cumsum([step(op) for op in row.split()])) for row in orders]"


def test_a_function_with_the_library_does_not_pass_and_a_wrong_result_comes_first() -> None:
    assert check("lab03.t3", in_notebook(RIGHT.format("costs"))).code == "not-your-own"
    feedback = check("lab03.t3", in_notebook(RIGHT.format("clock")))
    assert feedback.messages[0].startswith(
        "your results are right, but this task is graded without the library, so `simulate`, which `clock`"
    )
    assert check("lab03.t3", in_notebook(RIGHT.format("math"))).passed
    wrong = check("lab03.t3", in_notebook(RIGHT.format("costs").replace("max(", "min(")))
    assert wrong.code not in {"passed", "not-your-own"}
    assert wrong.messages[-1].startswith("this task is graded without the library, so `costs` is not there")
    assert not Student("ana").check("lab03.t3", in_notebook(RIGHT.format("costs"))).passed


def test_no_published_solution_uses_the_library_unless_the_task_gives_it() -> None:
    for key, task in TASKS.items():
        if task.kind == "build":
            cells = "from hybridlab import *\nimport numpy as np\nimport threading, queue\ncheck = lambda *answer: None\n"
            solution = in_notebook("import math\nf = solution", cells + lab_spec(key[:5]).solutions[key])
            assert task.instance(None).data.library or not library_in(solution), key


def test_the_text_of_each_task_and_its_prompt_say_that_the_library_is_not_there() -> None:
    for key, task in TASKS.items():
        cells = cells_of(reference(key[:5]))
        place = next(place for place, cell in enumerate(cells) if "task" in cell.tags and f'"{key}"' in cell.source)
        above = [cell for cell in cells[:place] if re.search(r"^#+ Task", cell.source, flags=re.MULTILINE)][-1]
        alone = task.kind == "build" and not task.instance(None).data.library
        assert ("graded with Python and numpy alone" in " ".join(above.source.split())) == alone, key
        assert task.prompt.endswith("; it is graded with Python and numpy alone") == alone
