"""The labs judge the claims of the documents by the recorded verdicts alone, so a lab and the page of claims cannot disagree."""

import ast
import re

from cases import in_turn
from notebooks import LABS, cells_of

from hybridlab.course.claims import CLAIMS, VERDICTS

TEXTS = {path.stem: cells_of(path) for path in sorted(LABS.glob("lab*.ipynb"))}
LINK = re.compile(r"\[claims? (\d+)\]\(\.\./book/claims\.md#claim-(\d+)\)")
BOLD = re.compile(r"\*\*([^*]+)\*\*")
WORD = re.compile(rf"\b({'|'.join(VERDICTS)})\b", re.IGNORECASE)
OF_RINGS = "All replicas agree, and all of them are wrong"  # lab 4 says this of a ring, not of a claim
REACH = 120  # characters; so near to a bold verdict the text names its claim


def shown(lab: str) -> set[int]:
    """Return the claims whose verdicts a lab shows in the output of its cells, or links."""
    found = set()
    for cell in TEXTS[lab]:
        if cell.kind == "markdown":
            found |= {int(number) for number, _ in LINK.findall(cell.source)}
            continue
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "verdicts":
                found |= {ast.literal_eval(each) for each in node.args}
    return found


def contradictions(text: str) -> list[str]:
    """Return the bold verdicts of a text that name no claim, or a claim with another verdict."""
    faults = []
    for bold in BOLD.finditer(text):
        for word in WORD.findall(bold[1]):
            link = LINK.search(text, bold.start(), bold.end() + REACH)
            if bold[1] != OF_RINGS and (link is None or CLAIMS[int(link[1])].verdict != word.lower()):
                faults.append(text[bold.start() : bold.end() + REACH])
    return faults


def test_a_bold_verdict_is_that_of_its_claim() -> None:
    cells = [(lab, cell.source) for lab, all_cells in TEXTS.items() for cell in all_cells if cell.kind == "markdown"]
    assert [(lab, fault) for lab, source in cells for fault in contradictions(source)] == []
    assert {pair for _, source in cells for pair in LINK.findall(source) if pair[0] != pair[1] or int(pair[0]) not in CLAIMS} == set()


@in_turn(
    "text, seen",
    [
        ("So it **depends** ([claim 7](../book/claims.md#claim-7)).", False),
        ("So it is **wrong** ([claim 7](../book/claims.md#claim-7)).", True),
        ("**Wrong.** The total is 1210 ms.", True),
    ],
)
def test_a_lab_that_contradicts_a_claim_is_seen(text: str, seen: bool) -> None:
    assert bool(contradictions(text)) is seen


def test_a_claim_leads_to_the_labs_that_show_its_verdict() -> None:
    assert {(number, lab) for lab in TEXTS for number in shown(lab) if lab not in CLAIMS[number].labs} == set()
