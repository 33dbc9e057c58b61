"""Draw wrong values for public functions, mixed with usual values, and check that each outcome is allowed."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from cases import refusal
from hypothesis import strategies as st

from hybridlab import Costs, HybridLabError, Op, build, simulate

SCHEDULE = build("1f1b", 2, 2)
COSTS = Costs(forward=[1, 2], backward=[2, 3], p2p=1)
TIMELINE = simulate(SCHEDULE, COSTS)
BATCH = simulate(SCHEDULE, Costs(forward=[[1], [2]], backward=2))


class BrokenRepr:
    """An object whose ``repr`` and ``str`` raise an error."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__


class BrokenIndex:
    """An object that claims to be a whole number although it is not."""

    def __index__(self) -> int:
        raise ValueError("no index")


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)

_NOT_OPS: list[Any] = [("F", 0, 0), (None, None, None), ([], 0, 0), ("F", 0.5, [0])]
ODD_OPS = [Op._make(parts) for parts in _NOT_OPS]  # an Op does not check its parts

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2, 3, 10**6, 10**7 + 1, 2**62, 2**63, 2**64, -(2**63), 10**400, -(10**5000),
    10**5000, 0.0, -0.0, 0.5, 1.0, -1.0, 1e-320, 1e308, float("nan"), float("inf"), float("-inf"), 1j, 2.5, "", " ",
    "F", "B", "0F0", "1f1b", "gpipe", "1F1B", "device 0:", "0F0 0B0", "\x00", "\ud800", "٣F٣", "²", "nan", "9" * 5000,
    b"", b"0F0", bytearray(b"1"), memoryview(b"ab"), [], [[]], [[], []], (), {}, set(), {"0F0"}, {0: 1}, [None],
    [1, [2, 3]], [[1, 2], [3]], [1.0, float("nan")], [[1], [2, 3]], ["0F0", "0B0"], [["0F0", "0B0"]],
    [["0F0"], "0B0"], [[b"0F0"]], [[("F", 0, 0)]], [[1, 2]], range(3), range(0), iter([1, 2]), object(), object, type,
    len, Ellipsis, NotImplemented, slice(None), BrokenRepr(), [BrokenRepr()], BrokenIndex(), [BrokenIndex()],
    CIRCLE, np.nan, np.inf, np.array([]), np.zeros((0, 3)), np.zeros((2, 0)), np.array(3), np.array([3]),
    np.array(3.0), np.array([1, 2, 3]), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array(["1", "2"]), np.array([b"1"]),
    np.array([None, 1]), np.array([True]), np.array([1j]), np.array(["2020-01-01"], dtype="datetime64[D]"),
    np.array([1], dtype="timedelta64[s]"), np.float16(1), np.float32("nan"), np.float16("inf"),
    np.longdouble("1e4000"), np.uint64(2**64 - 1), np.int8(-3), np.bool_(True), np.str_("gpipe"), np.bytes_(b"x"),
    np.zeros(2, dtype=[("a", int), ("b", float)]), np.void(b"xx"), np.zeros((1,) * 30), np.zeros((2, 3, 4)),
    np.full((2, 2), -1), np.array([[[0, 1]], [[2, 3]]]), np.array([[[0, 1]], [[2, 2**62]]]),
    np.array([[[0.5, 1]], [[2, 3]]]), Op.parse("0F0"), *ODD_OPS,
    build("1f1b", 2, 2), Costs(forward=1, backward=2), Costs,
]  # fmt: skip

junk: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(ODD),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=12),
    st.binary(max_size=6),
    st.lists(st.one_of(st.sampled_from(ODD), st.floats(), st.integers(-5, 5)), max_size=4),
    st.lists(st.lists(st.one_of(st.integers(-3, 9), st.floats(), st.none()), max_size=3), max_size=3),
    st.recursive(st.none() | st.booleans() | st.integers(-2, 12) | st.text(max_size=3), st.lists, max_leaves=6),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


def usual_or_junk(usual: list[Any]) -> st.SearchStrategy[Any]:
    """Draw usual values as well as junk, so that some examples get past the first check."""
    return st.one_of(st.sampled_from(usual), junk)


small = usual_or_junk([1, 2, 3, 4])


def outcome(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Return the result, or None if the call was refused.

    A refusal is a HybridLabError with a sentence. All other errors are raised, and so are warnings.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return function(*arguments, **named)
        except HybridLabError as why:
            sentence = str(why)
    assert len(sentence) > 15, "an error says what is wrong"
    assert len(sentence) < 3000, "people must be able to read an error"
    return None


def refused_and_unchanged(make: Callable[..., Any], name: str, value: Any, code: str, *words: str) -> None:
    """Assert that a view refuses a value with this code and these words, and keeps its state.

    The value is tried in two ways: set later, and given when the view is made.
    """
    view = make()
    before = repr(view)
    with refusal(code, *words):
        setattr(view, name, value)
    with refusal(code, *words):
        make(show={name: value})
    assert repr(view) == before
