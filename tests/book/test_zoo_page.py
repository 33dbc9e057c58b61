"""Test the page of open problems: its table has the numbers of the records, and its judge says what `hybridlab.zoo.verify` says."""

import json
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import node
import pytest
import zoo_page
from test_validation_script import changed

from hybridlab import REGISTRY, HybridLabError, Schedule, build, zoo

BOOK = Path(__file__).resolve().parents[2] / "book"
JUDGE = """
import { verdictOn } from "./zoo_judge.js";
const answer = (cases) => cases.map(([instance, text]) => verdictOn(instance, text));
"""


class Rows(HTMLParser):
    """The rows of a table: the id of each, and the texts of its cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[tuple[str | None, list[str]]] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append((dict(attributes).get("id"), []))
        elif tag in ("th", "td"):
            self.rows[-1][1].append("")

    def handle_data(self, text: str) -> None:
        if self.rows and self.rows[-1][1]:
            self.rows[-1][1][-1] += text.strip("\n")


def stored(folder: str) -> Iterator[dict[str, Any]]:
    """Yield the fields of the JSON files of the zoo, as they are stored."""
    for path in (Path(zoo.__file__).parent / folder).glob("*.json"):
        yield json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page() -> str:
    return zoo_page.fill((BOOK / "zoo.md").read_text(encoding="utf-8"))


def test_the_table_has_the_numbers_of_the_stored_files(page: str) -> None:
    records = {each["instance"]: each for each in stored("records")}
    rows = dict(Rows(page).rows[1:])
    assert len(rows) == len(records) > 90
    still_open = 0
    for instance in stored("instances"):
        name, record = instance["name"], records[instance["name"]]
        head, group, size, memory, best, bound, gap, state, found, proven = rows[name]
        wanted = f"{instance['devices']}x{instance['microbatches']}"
        assert (head, group, size.split(str(instance["chunks"]) + " chunks")[0]) == (name, instance["class"], wanted)
        limit = instance["memory"]
        listed = limit if isinstance(limit, list) else [limit]
        assert memory == ("no limit" if limit is None else " to ".join(map(str, dict.fromkeys([min(listed), max(listed)]))))
        assert [int(each.replace(",", "").split()[0]) for each in (best, bound)] == [record["makespan"], record["bound"]]
        more = record["makespan"] / record["bound"] - 1
        assert float(gap.rstrip("%")) == pytest.approx(100 * more, abs=0.0501)
        claimed = record["proven"]["reason"] == "claimed"
        effort = record["proven"]["effort"]
        proof = "at once" if effort is None else "easy" if effort <= 10 else "hard"
        assert state == ("claimed" if claimed else "open" if more else f"closed, {proof}")
        assert (found, proven.split(", ")[0]) == (record["found"]["by"], record["proven"]["by"])
        still_open += state == "open"
    assert f"{still_open} problems are open" in " ".join(page.split())
    assert not zoo_page.MARKS.search(page)


def test_a_claimed_bound_closes_nothing_and_a_name_is_no_html() -> None:
    instance, record = zoo.instance("even-4x8-m4"), zoo.record("even-4x8-m4")
    assert record.closed
    claimed = replace(record.proven, by='<img src="x"> & Co', reason="claimed", program=None, source="a paper")
    told = Rows(zoo_page.row(instance, replace(record, proven=claimed)))
    assert told.rows[0][1][7:] == ["claimed", record.found.by, '<img src="x"> & Co, not checked']
    assert "img" not in told.tags
    assert zoo_page.task(instance, replace(record, bound=1, proven=claimed))["bound"] == instance.bound


def test_the_best_of_the_gallery_is_an_order_for_the_instance() -> None:
    found = {name: zoo_page.best_of_gallery(zoo.instance(name)) for name in ("even-4x8-m4", "even-4x8-m2", "whole-4x8-m4")}
    makespans = {name: timeline and (timeline.schedule.name, round(timeline.makespan)) for name, timeline in found.items()}
    # ZB-H1 takes M(F + I + W) + (K - 1)(F + I - W), and 1F1B M(F + B) + (K - 1)(F + B); with less memory than K there is none
    assert makespans == {"even-4x8-m4": ("zb-h1", 270), "even-4x8-m2": None, "whole-4x8-m4": ("1f1b", 330)}


def judged(folder: Path, cases: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return what the judge of the page says about each pair of an instance and a text."""
    given = {name: zoo_page.task(zoo.instance(name), zoo.record(name)) for name in {name for name, _ in cases}}
    answers: list[dict[str, Any]] = node.run(folder, JUDGE, [[given[name], text] for name, text in cases])
    return answers


@pytest.mark.needs("node")
def test_the_page_computes_the_makespan_of_every_record(tmp_path: Path) -> None:
    records = [zoo.record(each.name) for each in zoo.instances()]
    answers = judged(tmp_path, [(each.instance, "\n".join(each.order)) for each in records])
    told = {each.instance: (answer["code"], answer.get("makespan")) for each, answer in zip(records, answers, strict=True)}
    assert told == {each.instance: ("equal", each.makespan) for each in records}


def texts_for(name: str, rng: Random) -> list[str]:
    """Return orders for an instance: its record, those of the registry at its size and at others, and each of them with a random change."""
    problem = zoo.instance(name)
    found = ["\n".join(zoo.record(name).order), str(zoo.record(name).schedule.to_csv())]
    for family in REGISTRY:
        for devices, microbatches in ((problem.devices, problem.microbatches), (problem.devices, 2 * problem.microbatches), (2, 4)):
            try:
                found.append(str(build(family, devices, microbatches)))
            except HybridLabError:
                continue
    return found + [changed(text, rng) for text in found]


@pytest.mark.needs("node")
def test_the_page_says_what_the_library_says(tmp_path: Path) -> None:
    rng = Random(42)  # noqa: S311 - the same in every run
    names = ("even-4x8-m4", "whole-4x8-m2", "chunks-6x12-any-m6", "uneven-4x8-each4")
    cases = [(name, text) for name in names for text in texts_for(name, rng)]
    seen = set()
    for (name, text), told in zip(cases, judged(tmp_path, cases), strict=True):
        try:
            verdict = zoo.verify(Schedule.parse(text), zoo.instance(name), zoo.record(name))
        except HybridLabError:
            assert told["code"] == "refused", (name, text)
            seen.add("cannot run")
            continue
        if verdict.code in ("refused", "worse"):
            assert (told["code"], (told["faults"] or [told["sentence"]])[0]) == (verdict.code, verdict.sentence), (name, text)
        else:
            assert (told["code"], told["makespan"]) == ("equal", verdict.makespan), (name, text)
        seen.add(verdict.sentence if verdict.code == "refused" else verdict.code)
    assert {"cannot run", "worse", "closed"} <= seen
    faults = [" devices, ", " microbatches, ", " stages, ", " copies of ", "pairs", "full backwards only", ", more than ", "this placement"]
    assert all(any(fault in each for each in seen) for fault in faults), "the comparison says nothing about a fault that no case has"
