"""Test where a browser may break a formula, and that signs which touch a formula stay on its line."""

import re

from cases import in_turn
from docutils import nodes
from docutils.core import publish_doctree
from mathml import keep_together, parts_of


def plain(part: str) -> str:
    return re.sub(r"<[^>]+>", "", part).replace("\N{MINUS SIGN}", "-").replace("&gt;", ">")


@in_turn(
    "formula, parts",
    [
        ("a = b + c - d", ["a", "=b", "+c", "-d"]),
        ("a = (b + c) x", ["a", "=(b+c)x"]),
        ("a = (b + (c - d) + e) - f", ["a", "=(b+(c-d)+e)", "-f"]),
        ("-a > -b", ["-a", ">-b"]),
        ("a", ["a"]),
    ],
)
def test_a_displayed_formula_can_go_on_before_a_sign_that_stands_in_no_brackets(formula: str, parts: list[str]) -> None:
    assert [plain(part) for part in parts_of(formula)] == parts


def test_signs_beside_a_formula_or_short_code_stay_on_its_line() -> None:
    document = publish_doctree("Of (:math:`K`), and ``M``: not ``a_long_name_in_code``. End.")
    text = document.astext()
    keep_together(None, document, "page")
    assert [each.astext() for each in document.findall(nodes.inline) if "unbroken" in each["classes"]] == ["(K),", "M:"]
    assert document.astext() == text
