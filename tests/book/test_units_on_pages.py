"""Test that a number and its unit, and a short name with a hyphen, stay on one line of a page, and that nothing else changes."""

from cases import in_turn
from docutils import nodes
from docutils.core import publish_doctree
from units import keep_names, keep_units


@in_turn(
    "written, kept",
    [
        ("takes 5 ms or 7.9 %.", "takes 5~ms or 7.9~%."),
        ("**7.9** % of the *time* % here", "7.9~% of the time % here"),
        ("80 GB, 25 GB/s, 1.5 GiB, 3 µs, 4 s", "80~GB, 25~GB/s, 1.5~GiB, 3~µs, 4~s"),
        ("8 stages, 2 msgs and 4 GPUs; ms 5", "8 stages, 2 msgs and 4 GPUs; ms 5"),
        ("``5 ms`` is code", "5 ms is code"),
        ("``p2p=5`` ms", "p2p=5~ms"),
    ],
)
def test_only_the_space_between_a_number_and_its_unit_is_fixed(written: str, kept: str) -> None:
    document = publish_doctree(written)
    keep_units(None, document, "page")
    assert document.astext().replace("\N{NO-BREAK SPACE}", "~") == kept


@in_turn(
    "written, kept",
    [
        ("ZB-H1, *ZB-V* and V-Half", ["ZB-H1", "ZB-V", "V-Half"]),
        ("DualPipe-V: see `ZB-H2 in the book <https://example.org>`_.", ["DualPipe-V", "ZB-H2"]),
        ("A micro-step, all-gather and ``ZB-H1`` in code", []),
        ("M >= 2K-1 or K-1", []),
    ],
)
def test_only_names_with_a_capital_after_the_hyphen_are_kept(written: str, kept: list[str]) -> None:
    document = publish_doctree(written)
    text = document.astext()
    keep_names(None, document, "page")
    assert [each.astext() for each in document.findall(nodes.inline) if "unbroken" in each["classes"]] == kept
    assert document.astext() == text
