"""Test which part of a glossary entry stands in a page: whole sentences, as many as fit."""

from cases import in_turn
from docutils.core import publish_doctree
from linked_text import LINK, entries_of, shortened

TEXT = "One two. Three four. Five."


@in_turn("longest, kept", [(26, TEXT), (25, "One two. Three four."), (20, "One two. Three four."), (19, "One two."), (3, "One two.")])
def test_an_entry_is_cut_after_the_last_whole_sentence_that_fits(longest: int, kept: str) -> None:
    assert shortened(TEXT, longest) == kept


def test_terms_have_the_text_of_their_entry() -> None:
    glossary = publish_doctree("bubble\n    Idle *time*.\n\nstage\n    A part of the model.\n")
    for item in glossary.findall(lambda node: node.tagname == "term"):
        item["ids"] = [f"term-{item.astext()}"]
    assert entries_of(glossary) == {"term-bubble": "Idle time.", "term-stage": "A part of the model."}


def test_a_link_to_a_term_is_found_from_every_folder() -> None:
    links = 'href="../book/glossary.html#term-a" href="glossary.html#term-b" href="other.html#term-c" href="#term-d"'
    assert LINK.findall(links) == ["term-a", "term-b"]
