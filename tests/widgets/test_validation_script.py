"""Test that the page judges the text of a schedule as the library does: the same codes, sentences and marks for many texts."""

import inspect
import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import node
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import Node
from profiles import seeds
from strategies import any_orders, crossing_orders, legal_orders, sizes
from texts import EVERY_TEXT

from hybridlab import InvalidSchedule, Schedule
from hybridlab.schedule import text, validation
from hybridlab.schedule.text import split_text
from hybridlab.schedule.validation import Problem
from hybridlab.sheets import without_notes

pytestmark = pytest.mark.needs("node")

CASES = 8 * len(seeds(400))  # 3,200 texts in the full profile
JUDGED = """
import { judged, readLines } from "./validation.js";
const forwardFirst = ([one, other]) => (other && one.kind === "B" ? [other, one] : [one, other]).flatMap((op) => op?.text ?? []);
const answer = (texts) => texts.map((text) => {
  const lines = readLines(text);
  const { faults, circle, orders, paths } = judged(lines);
  const astray = lines.flatMap(({ words }) => words.filter((word) => text.slice(word.start, word.end) !== word.text));
  const told = faults.map(({ sentence, code, device, position }) => [sentence, code, device, position]);
  const stages = [...paths.copies[0]].length;
  const copies = paths.copies.map((path) => Array.from({ length: stages }, (_, stage) => path.get(stage)));
  return { faults: told, circle, astray, ...(faults.length ? {} : { orders: orders.map((turns) => turns.map(forwardFirst)), copies }) };
});
"""
SPACES = [" ", "  ", "\t", "\r", "\r\n", ",", ";", ' "', ", ,", "\u00a0", "\u2003", "\u3000", "\x1c", "\x85", "\n", "\n\n", "\n \t\n"]
BLANK = re.compile(r'[\s,;"]*')
LIST = re.compile(r'^([^\[\]]*)\[([^\[\]]*)\]([\s,;"]*)$')
ODD = [
    "", "0X0", "0f0", "1b1", "2i0", "w", "F0", "0F", "device", "device 1", "device 0:", "0F0,0B0", "#", "()", "(0F0", "(0F1;0B0)", "0F0)",
    "(0f1;0B0)", "(0F1;0B0)OVERLAP_F_B", "( 0F1 ; 0B0 )", "(0F0;0B0)", "(0I0;0W0)", "(0F0;0F1)", "(0F1;)", "(0F1;0B0;0B1)", "00F01", "-1F0",
    "0F9999999999", "1234567890F0", "123456789F0", "0F123456789", "'", '"', "'\"", "\\", "\x07", "\u200b", "\ufeff", "\U0001f600", "\u0301",
    "\n#", "\nsep=,\n", "[", "]", "None", "0SEND_F1", "1RECV_B", "0UNSHARD", "0WAIT_X", "0SENDF",
    "٣F٣", "²F0", "0\u01310", "ß" * 70, "x" * 58, "x" * 59, "\u2028", "(0F1;\x010B0)", "(a;b)_é", "(a;b)x1 ",
]  # fmt: skip


def changed(text: str, rng: Random) -> str:
    """Return a text with one change: a word is dropped, doubled, moved, renamed or paired, or a line or a label is changed."""
    words = list(re.finditer(r"\(.*?\)|[^\s:]+", text))
    if not words:
        return text + rng.choice(ODD)
    one, other = rng.choice(words), rng.choice(words)
    lines = text.split("\n")
    line = rng.randrange(len(lines))
    others = lines[:line] + lines[line + 1 :]
    label = rng.choice(["", r"device \1", r"device \g<1>0:", r"device  0\1 :"])

    def instead(new: str) -> str:
        return text[: one.start()] + new + text[one.end() :]

    exchanged = text[: one.start()] + other[0] + text[one.end() : other.start()] + one[0] + text[other.end() :]
    return rng.choice([
        lambda: instead(""),
        lambda: instead(" ".join([one[0]] * rng.randint(2, 4))),
        lambda: exchanged if one.end() <= other.start() else text,
        lambda: instead(re.sub(r"\d+", lambda found: str(rng.randint(0, int(found[0]) + 2)), one[0])),
        lambda: instead(re.sub("[FBIW]", lambda _: rng.choice("FBIW"), one[0])),
        lambda: instead(one[0].lower()),
        lambda: instead(rng.choice(ODD)),
        lambda: re.sub(rf"({re.escape(one[0])}) +(\S+)", r"(\1;\2)", text, count=1),
        lambda: text.replace(rng.choice([" ", "\n", ": ", "device"]), rng.choice([*SPACES, ":", "Device ", " DEVICE\t"])),
        lambda: instead(one[0] + rng.choice(SPACES)),
        lambda: "\n".join(others),
        lambda: "\n".join([*others, re.sub(r"([^\s:]+(?: [^:\n]*)?)$", r"[\1, None]", lines[line])]),
        lambda: "\n".join([*others, lines[line]]),
        lambda: re.sub(r"device (\d+):", label, text, count=line),
        lambda: rng.choice(["\ufeff", "\n", " "]) + text,
    ])()  # fmt: skip


def written(orders: list[list[Node]]) -> str:
    return "\n".join(" ".join(f"{stage}{kind}{microbatch}" for kind, stage, microbatch in order) for order in orders)


def with_own_inputs_first(orders: list[list[Node]]) -> list[list[Node]]:
    """Return orders in which each forward comes before its own backward, so that what remains wrong is a deadlock."""
    found = []
    for order in orders:
        places = sorted(order, key=lambda node: (node[1:], "FBIW".index(node[0])))
        free = sorted(range(len(order)), key=lambda place: order[place][1:])
        found.append([node for _, node in sorted(zip(free, places, strict=True))])
    return found


def random_texts(count: int) -> list[str]:
    """Draw texts of schedules that can run, of orders that cannot, and of nothing in particular; each is also changed up to three times."""
    found: list[str] = []
    legal = st.one_of(sizes().map(lambda size: size.build()), legal_orders(), crossing_orders()).map(str)
    waiting = any_orders().map(with_own_inputs_first).map(written)
    words = st.lists(st.sampled_from([*ODD, *SPACES, "0F0", "0B0", "1F0", "1B0", "0I0", "0W0"]), max_size=9).map(" ".join)
    letters = st.text(st.characters(exclude_categories=["Cn", "Cs"]), max_size=20)  # node may know more letters than Python

    @settings(max_examples=count // 8, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of(legal, legal, waiting, waiting, waiting, any_orders().map(written), words, letters))
    def draw(text: str) -> None:
        rng = Random(len(found))  # noqa: S311  # the same in every run
        found.append(text)
        for changes in (1, 1, 1, 2, 2, 3, 3):
            new = text
            for _ in range(changes):
                new = changed(new, rng)
            found.append(new)

    draw()
    return found


def told(text: str) -> dict[str, Any]:
    """Return what the library says about a text, in the form in which the page says it; no word is astray from its place in the text."""
    try:
        schedule = Schedule.parse(text)
    except InvalidSchedule as why:
        if why.problems:
            faults = [[each.sentence, each.code, each.device, each.position] for each in why.problems if isinstance(each, Problem)]
            circles = re.findall(r"^  (device \d+ waits for .*)$", str(why), re.MULTILINE)
            return {"faults": faults, "circle": "".join(circles), "astray": []}
        return {"faults": [[str(why), why.code, *place_of(text, str(why))]], "circle": "", "astray": []}
    orders = [[[str(op) for op in turn] for turn in order] for order in schedule.turns]
    return {"faults": [], "circle": "", "astray": [], "orders": orders, "copies": [list(path) for path in schedule.paths]}


def place_of(text: str, sentence: str) -> list[int | None]:
    """Return the device and the position that a sentence with a line and a column is about; no position for a label."""
    found = re.match(r"line (\d+), column (\d+): (device)?", sentence)
    if found is None:
        return [None, None]
    lines = without_notes(text.removeprefix("\ufeff"))[0]
    line = int(found[1]) - 1
    device = sum(not BLANK.fullmatch(each) for each in lines[:line])
    if found[3]:
        return [device, None]
    label = r"^[\s,;\"]*device\s+\d{1,9}(?:\s*:|(?=[\s,;\"]|$))"
    written = LIST.sub(lambda parts: f"{parts[1]} {parts[2].replace('None', '    ')} {parts[3]}", lines[line])
    before = re.sub(label, "", written[: int(found[2]) - 1], flags=re.IGNORECASE)
    return [device, len(split_text(before)[0]) if not BLANK.fullmatch(before) else 0]


BY_HAND = [
    *EVERY_TEXT,
    *(f"0F0 {each}" for each in ODD),
    "0F0 0F3 0B0 0B3",
    "0F0 0F1 0B0 0B1\n1F0 (1B0;1F1) 1B1",
    "0F0,0F1,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n",
    '0F0;0F1;0B0;0B1\n"1F0";"(1F1;1B0)OVERLAP_F_B";"1B1"\n',
    "[0F0, 0F1, None, 0B0, 0B1]\ndevice 1: [None, 1F0, 1F1, 1B0, 1B1],",
    "0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7",
    "0F0 " + "x" * 58,
    "0F0 " + "x" * 59,
]


@pytest.fixture(scope="module")
def cases() -> list[str]:
    return [*BY_HAND, *random_texts(CASES)]


@pytest.fixture(scope="module")
def expected(cases: list[str]) -> list[dict[str, Any]]:
    return [told(text) for text in cases]


def test_the_page_says_of_every_text_what_the_library_says(cases: list[str], expected: list[dict[str, Any]], tmp_path: Path) -> None:
    answers = node.run(tmp_path, JUDGED, cases)
    assert len(answers) == len(cases) >= CASES
    wrong = [(text, right, answer) for text, right, answer in zip(cases, expected, answers, strict=True) if right != answer]
    assert not wrong, f"{len(wrong)} differ, for example {wrong[0]}"


def test_the_texts_have_faults_of_every_kind(expected: list[dict[str, Any]]) -> None:
    """The comparison says nothing about a fault that no text has."""
    counts = Counter(code for each in expected for code in {fault[1] for fault in each["faults"]} or {"none"})
    sources = "".join(inspect.getsource(part) for part in (text, validation))
    codes = set(re.findall(r'"([a-z]+(?:-[a-z]+)+|empty|deadlock)"', sources)) - {"not-a-list", "not-text"}
    assert {code for code, count in counts.items() if count > 1} == codes | {"unknown-operation", "none"}
    assert sum(each["circle"].count("which") > 1 for each in expected) > 1


FAULTS = [
    ("validation.js", "often === 2", "often === 3"),
    ("validation.js", "visited.filter((each) => each === device).length", "visited.length"),
    ("validation.js", "numbers.length <= MOST_NAMED", "numbers.length < MOST_NAMED - 6"),
    ("validation.js", "first.length || early.length", "first.length"),
    ("validation.js", "[...first, ...early]", "first"),
    ("validation.js", "device: null, position: null, ...each", "...each, position: null"),
    ("validation.js", "I && !(B || W)", "I && !W"),
    ("validation.js", "W && !(B || I)", "W && !I"),
    ("validation.js", "Number(told) !== device", "Number(told) < device"),
    ("validation.js", '{ B: "F", I: "F", W: "I" }', '{ B: "F", W: "I" }'),
    ("validation.js", "if (!map.has(op.stage))", "if (true)"),
    ("validation.js", "way.slice(way.indexOf(waits.get(way.at(-1))))", "way"),
    ("validation.js", "where device ${other} stops too", "which is behind ${needed} on device ${other}"),
    ("validation.js", "letters.length > 60", "letters.length > 61"),
    ("orders.js", "{1,9}", "+"),
    ("orders.js", "`${stage - 1}F${microbatch}`", "`${stage + 1}F${microbatch}`"),
]


@pytest.mark.slow
def test_each_planted_fault_is_found(cases: list[str], tmp_path: Path) -> None:
    assert node.unnoticed(tmp_path, JUDGED, cases, FAULTS) == []
