"""Test that the facts in tests/data are those of the folder beside the repository, and that nothing is there that must stay outside."""

import json
import re

from beside import DATA, REFERENCE
from cases import in_turn

from hybridlab.course.comparisons import measured_runs

# their licences or their authors' wishes keep these tables outside, or they are too large
STAYS_OUTSIDE = {
    "iteration_times_a100_multi_node.csv",
    "allreduce_a100.csv",
    "measured/vtrain_single_node.json",
    "measured/hagemann_a100.json",
    "measured/hf_ultrascale_h100.json",
    "measured/llm_foundry.json",
    "measured/megatron_bridge.json",  # of its 111 rows, only those that a table of the course shows may be copied
    "measured/bloom_a100.json",  # more than about forty rows
}
# the first two are made by scripts of this folder, which have tests of their own; the third comes from a review of the claims
OURS = {"published_figures.json", "published_runs.json", "claims_readings.json"}
NAMES = sorted(
    path.relative_to(DATA).as_posix() for path in DATA.rglob("*") if path.suffix in (".json", ".md") and path.name != "README.md"
)


@in_turn("name", [name for name in NAMES if name not in OURS])
def test_a_copy_is_that_of_the_reference(name: str) -> None:
    theirs = (REFERENCE / name).read_text(encoding="utf-8").replace("shared/reference/", "")
    assert (DATA / name).read_text(encoding="utf-8") == theirs


def test_everything_is_copied_that_may_be() -> None:
    there = {path.relative_to(REFERENCE).as_posix() for path in REFERENCE.rglob("*") if path.is_file() and path.name != "README.md"}
    assert there - STAYS_OUTSIDE == set(NAMES) - OURS
    assert there > STAYS_OUTSIDE


@in_turn("name", NAMES)
def test_no_copy_names_a_machine_or_a_registry(name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    assert not re.findall(r"(?:/home|/root|/tmp|/work|/Users)/|pypi|pythonhosted|npmjs", text)
    assert len(text) < 200_000


def test_the_read_me_names_every_file() -> None:
    told = (DATA / "README.md").read_text(encoding="utf-8")
    files = {path.relative_to(DATA).parts[0] for path in DATA.rglob("*") if path.is_file()} - {"README.md"}
    assert {name for name in files if f"`{name}" not in told and not name.startswith("torch_trace_rank")} == set()


def test_rows_of_the_measurements_name_a_source() -> None:
    for path in (DATA / "measured").glob("*.json"):
        told = json.loads(path.read_text(encoding="utf-8"))
        assert told["source"] != "per row" or all(row["source"] for row in told["rows"]), path.name


def test_carried_rows_have_the_numbers_of_the_measurements() -> None:
    """A layer's times are milliseconds there."""
    texts = [path.read_text(encoding="utf-8") for path in (REFERENCE / "measured").glob("*.json")]
    there = {round(float(number), 5) for text in texts for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)}
    for group in measured_runs.groups():
        for row in measured_runs.rows(group):
            units = 1000 if row.get("part") in ("forward", "backward") else 1
            measured = [row[name] for name in ("tokens", "samples", "tflops", "gib", "gb", "others_gib") if name in row]
            measured += [round(units * row["seconds"], 5)] if "seconds" in row else []
            assert there.issuperset(measured), (group, row)
