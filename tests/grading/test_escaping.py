"""Test that text of others is harmless in cells, Markdown, logs and names of files."""

import csv
import io
import re
import unicodedata

from cases import in_turn
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from hybridlab.course.grading.escaping import LONGEST_LINE, fenced, file_name, for_cell, for_log, for_markdown, visible

NASTY = [
    "[link](https://evil.example)",
    "![image](https://evil.example/x.png)",
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "<!-- comment",
    "https://evil.example www.evil.example evil.com me@evil.example",
    "# heading",
    "heading\n=======",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "```\ncode\n```",
    "~~~~~~\n``````",
    "`tick` ``ticks`` ```",
    "`",
    "` `",
    " ",
    "",
    "\\`[a](b)`",
    "- item\n1. item\n> quote\n***\n    code",
    "@teacher and #12 and GH-12 and owner/repo#3 :smile: $x$ [^1]",
    "[ref]: https://evil.example",
    "&lt;b&gt; &#64;teacher",
    "a\r\n\r\n<b>\x0b<i>\u2028<u>",
]
TOKENS = {
    "link_open",
    "image",
    "html_inline",
    "html_block",
    "heading_open",
    "table_open",
    "bullet_list_open",
    "blockquote_open",
    "hr",
    "fence",
}
MARKDOWN = MarkdownIt("gfm-like", {"html": True})
anything = st.text(max_size=60) | st.text("`~[]()<>!#*_|:;@-=+ \t\r\n\x1b\u202eaA0.\u200b", max_size=60)


def tokens(text: str) -> list[Token]:
    """Return all tokens of a text, as a Markdown parser sees them that makes links of bare addresses, too."""
    return [each for token in MARKDOWN.parse(text) for each in (token, *(token.children or []))]


def test_the_parser_sees_each_kind_of_harm() -> None:
    assert {token.type for text in NASTY for token in tokens(text)} >= TOKENS


@in_turn("text", NASTY)
def test_a_code_span_is_all_that_nasty_text_becomes(text: str) -> None:
    found = tokens(f"# Student: {for_markdown(text)}, file")
    assert not {token.type for token in found[1:]} & TOKENS
    assert [token.content.strip() for token in found if token.type == "code_inline"] == [for_log(text)]


@given(anything)
def test_no_text_leaves_its_place_in_a_line_of_markdown(text: str) -> None:
    types = [token.type for token in tokens(f"Student: {for_markdown(text)}, file")]
    assert types in (["paragraph_open", "inline", *middle, "paragraph_close"] for middle in (["text"], ["text", "code_inline", "text"]))


@in_turn(
    "text", ["Build the ring", "Open: the fastest order", "The goal of section 3.4", "ZB-H1's bubble by hand", "Who has the sum?", "30 %"]
)
def test_plain_words_stay_words(text: str) -> None:
    assert for_markdown(text) == text


@in_turn("text", NASTY)
def test_a_block_holds_nasty_text_as_it_is(text: str) -> None:
    lines = text.splitlines()
    found = tokens("\n".join([*fenced(lines), "", "after"]))
    assert [token.type for token in found] == ["fence", "paragraph_open", "inline", "text", "paragraph_close"]
    assert found[0].content.splitlines() == lines


@given(anything)
def test_nothing_ends_a_block_but_its_own_fence(text: str) -> None:
    found = tokens("\n".join([*fenced(visible(text).split("\n")), "", "after"]))
    assert [token.type for token in found] == ["fence", "paragraph_open", "inline", "text", "paragraph_close"]


FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "  =1+1",
    "\t=1",
    "\tx",
    "\rx",
    "\nx",
    "  \nx",
    "\u200b=1",
    "\x00=1",
    "\u00a0=1",
    "\uff1d1",
    "\ufeff-1",
]


@in_turn("text", FORMULAS)
def test_a_formula_in_a_cell_is_a_text(text: str) -> None:
    cell = for_cell(text)
    assert isinstance(cell, str)
    assert cell.startswith("'")


@given(anything)
def test_no_cell_begins_as_a_formula_whatever_separates_cells(text: str) -> None:
    written = io.StringIO()
    csv.writer(written).writerow(["a", for_cell(text), "b"])
    value = next(csv.reader(io.StringIO(written.getvalue(), newline="")))[1]
    for part in re.split(r"[;\t\n]", value):
        assert not part.lstrip().startswith(("=", "+", "-", "@"))


def test_numbers_and_plain_words_of_a_cell_stay() -> None:
    assert [for_cell(value) for value in (-1, 2.5, 0, "ana-1@uni.edu", "a = b", "")] == [-1, 2.5, 0, "ana-1@uni.edu", "a = b", ""]


COMMANDS = ["::error::x", "  ::add-mask::x", "\n\n::stop-commands::t", "a\r::error::x", "##[error]x", "a ##[group]x", "###[x]", "\u200b::x"]
COMMANDS += [
    "\x1b[31m::error::x",
    "\u00a0::x",
    "\ufeff::x",
    "\u034f::x",
    ":::x",
    "##vso[task.setvariable]x",
    "\u2028::x",
    "\u00ad::x",
    "\x9b1m::x",
]


@in_turn("text", COMMANDS)
def test_no_line_of_a_log_is_a_command(text: str) -> None:
    line = for_log(text)
    assert not line.lstrip().startswith("::")
    assert not re.search(r"##\w*\[", line)


@given(anything, st.integers(10, 400))
def test_a_line_of_a_log_is_one_line_that_is_seen(text: str, longest: int) -> None:
    line = for_log(text * 20, longest)
    assert len(line) <= longest
    assert not any(unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in line)


@in_turn(
    "text",
    [
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07red",
        "\x1b]8;;https://evil.example\x1b\\red",
        "r\u202eed",
        "\x9b31mred",
        "red\x00",
        "r\ud800ed",
        "r\u034fe\ufe0fd\ufffe",
    ],
)
def test_what_cannot_be_seen_is_left_out(text: str) -> None:
    assert visible(text) == "red"


def test_a_reference_to_an_issue_is_no_plain_word() -> None:
    assert for_markdown("see GH-12") == "`see GH-12`"


def test_no_line_of_a_block_is_a_command() -> None:
    assert fenced(["::error::x"]) == ["```", ": :error::x", "```"]


def test_a_long_line_is_cut() -> None:
    assert for_log("a" * 1000) == "a" * (LONGEST_LINE - 3) + "..."


IDS = [
    "ana",
    "Ana",
    "ANA",
    "ana ",
    " ana",
    "a/na",
    "a\\na",
    "",
    ".",
    "..",
    "...",
    "-rf",
    ".ana",
    "../ana",
    "con",
    "CON",
    "con.x",
    "nul",
    "x" * 80,
]
IDS += [
    "x" * 81,
    "x" * 500,
    "é",
    "e\u0301",
    "李雷",
    "李" * 90,
    "\U00020000" * 90,
    "ana@uni.edu",
    "a;b",
    "a:b",
    "a\x00b",
    "a\ud800b",
    "_",
    "_con",
    "a_b",
]
IDS += [file_name(student) for student in ("a!b", "Ana", "é", "")]


@in_turn("student", IDS)
def test_a_file_of_a_student_has_a_name_that_every_system_takes(student: str) -> None:
    name = file_name(student)
    assert re.fullmatch(r"[\w@][\w.@-]{0,79}", name)
    assert len(f"{name}.json.tmp".encode()) <= 255
    assert not re.match(r"(con|nul)(\.|$)", name, re.IGNORECASE)


def test_two_students_never_get_one_file_name() -> None:
    names = {unicodedata.normalize("NFC", file_name(student)).casefold() for student in IDS}
    assert len(names) == len(IDS)


@given(anything, anything)
def test_only_equal_ids_get_equal_file_names(one: str, other: str) -> None:
    assert (file_name(one).casefold() == file_name(other).casefold()) == (one == other)


def test_an_ordinary_id_is_its_file_name() -> None:
    assert [file_name(student) for student in ("ana", "s1234567", "ana.li-2@uni.edu", "x" * 80)] == [
        "ana",
        "s1234567",
        "ana.li-2@uni.edu",
        "x" * 80,
    ]
