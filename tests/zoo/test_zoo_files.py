"""Test the files of the zoo: the script gives them, schemas and strict readers accept them, and every record holds."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import make_instances
import pytest
from cases import in_turn

from hybridlab import HybridLabError
from hybridlab.zoo import FOLDER, instances, read_instance, read_record, record, verify

SIZES = {"even": 18, "latency": 12, "whole": 10, "uneven": 18, "chunks": 20, "published": 24}


def test_the_files_are_those_of_the_script() -> None:
    files = {path.stem: path.read_text(encoding="utf-8") for path in (FOLDER / "instances").glob("*.json")}
    assert files == make_instances.instances()
    assert {path.stem for path in (FOLDER / "records").glob("*.json")} == set(files)
    groups = [each.group for each in instances()]
    assert {group: groups.count(group) for group in SIZES} == SIZES
    assert list(dict.fromkeys(groups)) == list(SIZES), "the order is that of the classes"


def faults(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield fields with one fault: one is missing or of another type, at any depth, or there is one more."""
    yield fields | {"more": 1}
    for name, value in fields.items():
        yield {key: each for key, each in fields.items() if key != name}
        if isinstance(value, dict):
            yield from (fields | {name: wrong} for wrong in faults(value))
        if name not in ("memory", "unit", "source", "seed", "effort", "program"):
            yield fields | {name: None}
        yield from (fields | {name: wrong} for wrong in ([None], {"x": 1}, -1, 1.5, "", True) if wrong != value or type(wrong) is bool)


@in_turn("kind, read", [("instance", read_instance), ("record", read_record)])
def test_schemas_and_readers_accept_all_files_and_refuse_the_same_faults(kind: str, read: Callable[[Any], Any]) -> None:
    schema = json.loads((FOLDER / f"{kind}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for path in sorted((FOLDER / f"{kind}s").glob("*.json")):
        made, fields = read(path), json.loads(path.read_text(encoding="utf-8"))
        validator.validate(fields)
        assert made.to_json() == fields
        assert read(fields) == made
        assert path.stem == fields["name" if kind == "instance" else "instance"]
        if kind == "record":
            assert made.to_text() == path.read_text(encoding="utf-8"), "a record is written in one way"
    for wrong in faults(fields):
        if wrong.get("split") is True and fields.get("split") is not False:
            continue  # the only value that is right for both
        assert not validator.is_valid(wrong), wrong
        with pytest.raises(HybridLabError):
            read(wrong)


def test_all_records_verify() -> None:
    """A solver's bound was proven when it came."""
    for each in instances():
        best = record(each.name)
        verdict = verify(best, each, best)
        assert verdict.code == ("closed" if best.closed else "equal"), f"{each.name}: {verdict.sentence}"
        assert best.bound >= each.bound, f"{each.name}: lower_bound gives more than the record has"
    groups = [each.group for each in instances() if not record(each.name).closed]
    assert len(groups) >= 15, "so that there is something to find"


def test_makespans_and_memories_of_all_records_are_those_of_a_clock_of_whole_numbers() -> None:
    """The clock below reads the files alone."""
    for path in sorted((FOLDER / "records").glob("*.json")):
        fields = json.loads((FOLDER / "instances" / path.name).read_text(encoding="utf-8"))
        best = json.loads(path.read_text(encoding="utf-8"))
        makespan, peaks = clock(fields, best["order"])
        limits = fields["memory"] or fields["microbatches"]
        limits = limits if isinstance(limits, list) else [limits] * fields["devices"]
        assert makespan == best["makespan"], path.name
        assert all(peak <= limit * fields["chunks"] for peak, limit in zip(peaks, limits, strict=True)), path.name


def clock(fields: dict[str, Any], lines: list[str]) -> tuple[int, list[int]]:
    """Return the makespan of an order, and the largest number of activations of one chunk that each device holds."""
    orders = [[(kind, int(stage), int(number)) for stage, kind, number in re.findall(r"(\d+)([FBIW])(\d+)", line)] for line in lines]
    device_of = {stage: device for device, order in enumerate(orders) for _, stage, _ in order}
    times = {"F": fields["forward"], "I": fields.get("input_gradient"), "W": fields.get("weight_gradient"), "B": fields.get("backward")}
    times["B"] = times["B"] or [sum(both) for both in zip(times["I"], times["W"], strict=True)]
    ends: dict[tuple[str, int, int], int] = {}
    free, held, peaks, place = ([0] * len(orders) for _ in range(4))

    def arrives(source: tuple[str, int, int], device: int) -> int | None:
        sender, latency = device_of[source[1]], fields["latency"]
        message = 0 if sender == device else latency if isinstance(latency, int) else latency[sender][device]
        return ends[source] + message if source in ends else None

    left = sum(map(len, orders))
    while left:
        before = left
        for device, order in enumerate(orders):
            while place[device] < len(order):
                kind, stage, number = order[place[device]]
                sources = {"F": [("F", stage - 1, number)] if stage else [], "W": [("I", stage, number)]}.get(kind, [("F", stage, number)])
                if kind in "BI" and stage + 1 < len(device_of):
                    sources.append(next((each for each in (("I", stage + 1, number),) if each in ends), ("B", stage + 1, number)))
                ready = [arrives(source, device) for source in sources]
                if None in ready:
                    break
                free[device] = ends[kind, stage, number] = max([free[device], *ready]) + times[kind][stage]
                held[device] += {"F": 1, "I": 0}.get(kind, -1)
                peaks[device] = max(peaks[device], held[device])
                place[device], left = place[device] + 1, left - 1
        assert left < before, "the devices wait for ever"
    assert len(ends) == sum(map(len, orders))
    return max(free), peaks
