"""Attacks with answers: objects that lie, numbers and texts that a judge or a report cannot take, and functions that change."""

from collections.abc import Sequence

from hybridlab.course.grading.attack import Attack, last, unsolved
from hybridlab.course.grading.notebook import CodeCell
from hybridlab.course.grading.specs import LabSpec


def _with_odd_metadata(spec: LabSpec, honest: Sequence[CodeCell]) -> list[CodeCell]:
    """Return the honest cells, and cells whose metadata have commands and formulas."""
    texts = ("::warning::x", "=1+1", "<b>", "..", "__class__")
    return [*honest, *(CodeCell(f'check("{key}", 0)', text, text) for key in unsolved(spec, honest) for text in texts)]


ATTACKS_WITH_VALUES = (
    Attack(
        "equal-to-everything",
        "hand in an object that every comparison calls right",
        last("""
class Yes:
    def __getattr__(self, name): return Yes()
    def __call__(self, *given, **named): return Yes()
    def __iter__(self): return iter(())
    def __float__(self): return 1.0
    def __int__(self): return 1
    __index__ = __int__
    def __len__(self): return 1
    def __bool__(self): return True
    def __hash__(self): return 1
    def __array__(self, *given, **named): import numpy; return numpy.zeros(1)
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __abs__ = __getitem__ = lambda self, *other: Yes()
claim([Yes()]); claim({"A": Yes()}); claim(Yes(), lambda *given: Yes())
"""),
    ),
    Attack(
        "subclasses",
        "hand in numbers, text and arrays of classes of one's own",
        last("""
class Number(float):
    __eq__ = __le__ = __ge__ = lambda self, other: True
    __sub__ = __rsub__ = __abs__ = lambda self, *other: Number(0)
    __hash__ = float.__hash__
class Whole(int):
    __eq__ = lambda self, other: True
    __hash__ = int.__hash__
class Text(str):
    __eq__ = lambda self, other: True
    __hash__ = str.__hash__
    def strip(self, *given): return self
claim(Number(1)); claim(Whole(1)); claim(Text("1"))
try:
    import numpy
    class Array(numpy.ndarray):
        def __array_ufunc__(self, *given, **named): return numpy.True_
        def __array_function__(self, *given, **named): return True
    claim(numpy.ones(3).view(Array), lambda *given: numpy.ones(3).view(Array))
except ImportError: pass
claim([Whole(1), Number(2)], lambda *given: [Number(1)] * 3)
"""),
    ),
    Attack(
        "no-numbers",
        "hand in NaN and infinity",
        last("""
for value in (float("nan"), float("inf"), -float("inf"), [float("nan")] * 8, {"A": float("inf")}, (float("nan"),) * 3):
    claim(value)
"""),
    ),
    Attack(
        "huge-numbers",
        "hand in whole numbers with thousands of digits",
        last("""
for value in (10**5000, -10**1200, 10**1200, [10**1200] * 8, {"0F0": (10**1200, 10**1200)}, (10**1200, [10**1200])): claim(value)
"""),
    ),
    Attack(
        "deep-lists",
        "hand in 100,000 lists within lists, and a list within itself",
        last("""
deep = []
for _ in range(100_000): deep = [deep]
claim(deep)
itself = []; itself.append(itself)
claim(itself)
broad = [1]
for _ in range(8): broad = [broad] * 3
claim(broad)
"""),
    ),
    Attack(
        "many-entries",
        "hand in a dict with a million entries",
        last("""
claim({number: number for number in range(1_000_000)})
"""),
    ),
    Attack(
        "pickles",
        "let the grader unpickle an object that runs a command",
        last("""
import pickle, os
class Command:
    def __reduce__(self): return (os.system, (f"touch {WATCHED}/pickled",))
    __reduce_ex__ = lambda self, protocol: self.__reduce__()
    __getstate__ = __copy__ = __deepcopy__ = lambda self, *given: os.system(f"touch {WATCHED}/pickled")
claim(Command()); claim(pickle.dumps(Command())); claim(str(pickle.dumps(Command(), 0))); claim([Command()] * 3)
"""),
    ),
    Attack(
        "lying-classes",
        "hand in objects that lie about their class, and break whoever looks at them",
        last("""
class Lie:
    __class__ = property(lambda self: float)
    def __iter__(self):
        while True: yield self
    def __str__(self): raise SystemExit("MARKER")
    __repr__ = __str__
    def __len__(self): return 2**62
Schedule = type("Schedule", (), {"__module__": "hybridlab.schedule.schedule", "__str__": lambda self: "device 0: 0F0 0B0"})
Plan = type("Plan", (), {"__module__": "hybridlab.planner.plan", "__dataclass_fields__": {"passed": 1}, "passed": True})
class Text(type):
    __name__ = property(lambda self: "MARKER" * 99)
class Named(metaclass=Text): pass
for value in (Lie(), Schedule(), Plan(), Named(), [Lie()] * 3, {"A": Lie()}): claim(value)
"""),
    ),
    Attack(
        "endless-values",
        "hand in generators without an end",
        last("""
import itertools
def endless(*given):
    while True: yield 0
claim(itertools.count(), endless)
claim(map(str, itertools.repeat(1)), lambda *given: itertools.repeat("0F0"))
"""),
    ),
    Attack(
        "slow-texts",
        "hand in texts on which the patterns of a judge take long",
        last("""
for text in (" " * 20_000 + "x", "device " * 2_800, "1F" * 10_000, "(" * 9_000 + ")" * 9_000): claim(text)
for text in ("9**" * 6_000 + "9", "-" * 19_000 + "1", "10**9999 * 10**9999"): claim(text)
claim("1" * 20_000, lambda *given: ["1" * 20_000] * 45)
"""),
    ),
    Attack(
        "huge-orders",
        "hand in operations with numbers so large that tables for them need all memory",
        last("""
claim("device 0: 0F0 0F999999999 0B0 0B999999999", lambda *given: ["0F0 0B0 999999999F0 999999999B0"])
claim(["0F0 0B0", "99999999F99999999 99999999B99999999"])
"""),
    ),
    Attack(
        "close-to-everything",
        "let numpy call all arrays equal",
        last("""
try:
    import numpy
    numpy.allclose = numpy.array_equal = numpy.isclose = numpy.array_equiv = lambda *given, **named: True
    numpy.testing.assert_allclose = numpy.shares_memory = numpy.may_share_memory = lambda *given, **named: False
    numpy.ndarray.__module__ = "x"
except BaseException: pass
claim(0)
"""),
    ),
    Attack(
        "answer-of-second-call",
        "behave in another way when called again",
        last("""
calls = []
def changing(*given):
    calls.append(given)
    if len(calls) % 2: return [""] * len(given)
    raise ValueError(len(calls))
claim(1, changing)
"""),
    ),
    Attack(
        "changed-arguments",
        "change the arguments so that they fit the result",
        last("""
def emptied(*given):
    for each in given:
        try: each.clear()
        except Exception:
            try: each[...] = 0
            except Exception: pass
    return {} if len(given) == 4 else given[0]
claim(1, emptied)
"""),
    ),
    Attack(
        "workflow-commands",
        "give commands to the runner, and change the report",
        last("""
text = "\\n::set-output name=points::100\\n::add-mask::0\\n::error file=x::MARKER\\n##vso[task.complete]\\n\\x1b[2J"
print(text)
def named(*given): return text
named.__name__ = text
claim(text, named)
"""),
    ),
    Attack(
        "formulas",
        "hand in formulas of a spreadsheet",
        last("""
for text in ('=HYPERLINK("http://127.0.0.1:' + PORT + '","100")', "@SUM(1)", "+1", "-1+1", "=cmd|' /C calc'!A0", "\\t=1"):
    claim(text, lambda *given: [text])
"""),
    ),
    Attack(
        "markup",
        "hand in Markdown and HTML",
        last("""
for text in ("<script>alert(1)</script>", "![](http://127.0.0.1/x.png)", "| 100 |\\n|---|", "```\\n# passed", "&lt;b&gt;"):
    claim({"A": text})
claim("<img src=x onerror=alert(1)>", lambda *given: ["</details><h1>100</h1>"])
"""),
    ),
    Attack("odd-metadata", "write commands and formulas where the task and the id of a cell stand", _with_odd_metadata),
)
