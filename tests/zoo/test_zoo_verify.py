"""Test the check of records and the commands of the zoo: what is wrong is refused with a sentence, and what is better is told."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import changed_records
import pytest
from cases import in_turn, refusal
from command_line import hybridlab, json_of

from hybridlab import HybridLabError, Schedule, build
from hybridlab.zoo import FOLDER, VERSION, instance, instances, read_instance, read_record, record, record_of, solve, verify
from hybridlab.zoo.fitting import order_of
from hybridlab.zoo.reading import LARGEST_FILE
from hybridlab.zoo.solving import better_of

NAME = "even-4x8-m4"  # 1F1B takes 330 us and fits, ZB-H1 takes 270 us, which is the bound
PROBLEM, BEST = instance(NAME), record(NAME)
LONGER = record_of(PROBLEM, build("1f1b", 4, 8), by="A. Turing", how="by hand", day="2026-01-31")
GPIPE = replace(LONGER, order=order_of(build("gpipe", 4, 8)))
WHOLE = instance("whole-4x8-m4")
SOLVER = {"reason": "solver", "program": "a solver 1.0", "seed": 0, "effort": 1}
CLAIM = {"reason": "claimed", "program": None, "source": "a paper"}


def fields(record: Any = LONGER, proven: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return the fields of a record with changes."""
    made = record.to_json() | changes
    return made | {"proven": made["proven"] | (proven or {})}


def swapped(lines: list[str], first: str, second: str) -> list[str]:
    """Return lines with two operations of one device in each other's place."""
    return [" ".join({first: second, second: first}.get(word, word) for word in line.split()) for line in lines]


@in_turn(
    "changed, words",
    [
        (fields(instance="even-4x8-m2"), "of the instance 'even-4x8-m2', not of 'even-4x8-m4'"),
        (fields(makespan=329, bound=270), "makespan says 329, but the clock computes 330 for this order"),
        (fields(GPIPE), "it holds 8 activations on device 0, more than 4"),
        (fields(bound=271), "bound says 271, but a known order takes 270"),
        (fields(bound=331), "bound says 331, but the order of the record takes 330"),
        (fields(bound=271, proven=CLAIM), "bound says 271, but a known order takes 270"),
        (
            fields(order=[*LONGER.order[:3], LONGER.order[3].removesuffix(" 3B7")]),
            "cannot run: stage 3 never runs the backward of microbatch 7",
        ),
        (fields(order=list(LONGER.order[:3])), "the order has 3 devices, but even-4x8-m4 has 4"),
        (fields(order=list(build("1f1b", 4, 7).to_csv().replace(",", " ").splitlines())), "the order has 7 microbatches"),
        (fields(order=[LONGER.order[1], LONGER.order[0], *LONGER.order[2:]]), "stage 0 is on device 1, but with this placement it is on"),
        (fields(order=swapped(list(LONGER.order), "3F0", "3B0")), "device 3 runs 3B0 before 3F0"),
        (fields(order=[f"device 0: {LONGER.order[0]}", *LONGER.order[1:]]), "order must have only operations"),
        (fields(order=[f"{LONGER.order[0]} 0SEND_F0", *LONGER.order[1:]]), "order must have only operations"),
        (fields(order=[" ".join(["0F0"] * 1000), *LONGER.order[1:]]), "but even-4x8-m4 has at most 96 operations"),
        (fields(order=["0F0 0B0 x"] * 4), "'x' is not an operation"),
    ],
)
def test_a_record_that_is_wrong_is_refused(changed: dict[str, Any], words: str) -> None:
    verdict = verify(read_record(changed), PROBLEM, BEST)
    assert verdict.code == "refused", verdict
    assert words in verdict.sentence
    assert "\n" not in verdict.sentence


def test_a_bound_that_nobody_can_compute_is_refused() -> None:
    known = replace(LONGER, bound=1)
    verdict = verify(read_record(fields(bound=300)), PROBLEM, known)
    assert (verdict.code, verdict.sentence) == ("refused", "bound says 300, but lower_bound proves only 270")


@in_turn(
    "place, schedule, words",
    [
        ("loop", build("zb-v", 4, 8), "stage 4 is on device 3, but with this placement it is on device 0"),
        ("v", build("interleaved", 4, 8), "stage 4 is on device 0, but with this placement it is on device 3"),
        ("v", build("dualpipe-v", 4, 8), "overlapped pairs"),
    ],
)
def test_chunks_stand_where_the_instance_says(place: str, schedule: Schedule, words: str) -> None:
    problem = replace(instance(f"chunks-4x8-{place}-m4"), memory=None)
    assert words in verify(schedule, problem).sentence


def test_an_instance_with_whole_backwards_has_no_half_ones() -> None:
    assert verify(build("zb-h1", 4, 8), WHOLE).sentence == "0W0 is a part of a backward, but whole-4x8-m4 has full backwards only"
    assert "2 copies of the weights" in verify(build("chimera", 4, 8), replace(PROBLEM, memory=None)).sentence


def sent(makespan_from: Any, bound: int, proven: dict[str, Any] | None = None) -> Any:
    return read_record(fields(makespan_from, proven, bound=bound))


@in_turn(
    "entry, known, code, words",
    [
        (BEST, BEST, "closed", "closed: 270 us, and no order is shorter"),
        (BEST, LONGER, "new best", "new best, 60 us shorter: 270 us, and no order is shorter"),
        (LONGER, BEST, "worse", "60 us longer than the best known order, which takes 270 us"),
        (LONGER, LONGER, "equal", "equal to the best known order: 330 us, and the bound is 270 us"),
        (sent(BEST, 260), BEST, "worse", "its bound of 260 is below the proven bound of 270"),
        (sent(LONGER, 280, CLAIM), LONGER, "equal", "the bound is 270 us, and a bound of 280 is claimed"),
        (sent(LONGER, 330, CLAIM), LONGER, "equal", "the bound is 270 us, and a bound of 330 is claimed"),
        (sent(LONGER, 270, CLAIM), LONGER, "worse", "is only claimed, and no higher than the proven bound of 270"),
        (LONGER, sent(LONGER, 280, CLAIM), "equal", "the bound is 270 us"),
        (sent(LONGER, 300, SOLVER), LONGER, "equal", "the solver's bound of 300 counts when our solver proves it again"),
        (sent(LONGER, 300, SOLVER), sent(LONGER, 300, SOLVER), "equal", "the bound is 300 us"),
        (LONGER, None, "new best", "new: 330 us, and the bound is 270 us"),
        (LONGER.schedule, LONGER, "equal", "equal to the best known order: 330 us, and the bound is 270 us"),
        (BEST.schedule, LONGER, "new best", "60 us shorter"),
    ],
)
def test_a_right_record_is_compared_with_what_is_known(entry: Any, known: Any, code: str, words: str) -> None:
    verdict = verify(entry, PROBLEM, known)
    assert verdict.code == code, verdict
    assert words in verdict.sentence


def test_a_bound_of_a_solver_is_proven_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this instance the bound is below the optimum, which an enumeration gives in tests of the solver."""
    tight = instance("even-4x8-m2")
    assert tight.bound < 410
    found = record_of(tight, solve(tight, 0), by="me", how="schedule_for")
    assert found.makespan == 410
    right, wrong = (read_record(fields(found, SOLVER, bound=bound)) for bound in (410, 410))
    assert verify(right, tight, found, prove=True).sentence == "closed: 410 us, and no order is shorter"
    monkeypatch.setattr("hybridlab.zoo.verification.solve", lambda *_, **__: solve(tight, 0))
    assert verify(wrong, tight, found, prove=True).sentence.startswith("bound says 410, but our solver proves only 4")


def test_the_better_half_of_each_record_stays() -> None:
    proof = read_record(fields(LONGER, SOLVER, bound=300))
    claimed = read_record(fields(LONGER, CLAIM, bound=320))
    assert better_of(LONGER, BEST) == replace(BEST, proven=LONGER.proven)
    assert better_of(BEST, LONGER) == BEST
    assert better_of(LONGER, proof) == proof
    assert better_of(proof, LONGER) == proof
    assert better_of(claimed, LONGER) == LONGER, "what is proven takes the place of what is claimed"


# The commands


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "order.txt").write_text(str(BEST.schedule), encoding="utf-8")
    (tmp_path / "order.csv").write_text(BEST.schedule.to_csv(), encoding="utf-8")
    (tmp_path / "long.csv").write_text(LONGER.schedule.to_csv(), encoding="utf-8")
    return tmp_path


@in_turn(
    "content, code, words",
    [
        (b" " * (LARGEST_FILE + 1), 2, "sent.json has more than 4,000,000 bytes"),
        (b"\xff{}", 2, "sent.json is not a text in UTF-8"),
        (b"{", 2, "sent.json is not JSON in line 1, column 2"),
        (b"[" * 100_000, 2, "sent.json"),
        (b"9" * 5000, 2, "sent.json"),
        (b"[]", 2, "sent.json must be a JSON object with fields, not []"),
        (b'{"a": 1, "a": 1}', 2, "the field 'a' stands there twice"),
        (b'{"makespan": NaN}', 2, "NaN is not a number"),
        (fields(more=1), 2, "sent.json: the field 'more' is not known here"),
        (fields(format=2), 2, "format 2 is not known: this version reads format 1"),
        (fields(makespan=-1), 2, "makespan must be a whole number of at least 1, not -1"),
        (fields(makespan=10**400), 2, "makespan must be at most 1,000,000,000,000, not "),
        (fields(instance="even-4x8-m3"), 2, "unknown instance 'even-4x8-m3': did you mean 'even-4x8-m"),
        (fields(proven=CLAIM | {"source": None}), 2, "sent.json: proven: source must be a text, not null"),
        (fields(proven={"seed": 1}), 2, "seed belongs to the reason 'solver'"),
        (fields(found=LONGER.to_json()["found"] | {"by": "a\nb"}), 2, "by must be a line of printable characters"),
        (fields(found=LONGER.to_json()["found"] | {"date": "31.1.2026"}), 2, "date must be a date such as 2026-01-31"),
        (fields(makespan=320), 1, "makespan says 320, but the clock computes 330"),
        (fields(bound=320), 1, "bound says 320, but a known order takes 270"),
        (fields(), 1, "60 us longer than the best known order"),
        (BEST.to_json(), 0, "closed: 270 us, and no order is shorter"),
    ],
)
def test_verify_answers_every_file_with_a_sentence(folder: Path, content: Any, code: int, words: str) -> None:
    (folder / "sent.json").write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    done = hybridlab("zoo", "verify", "sent.json")
    assert done.exit_code == code, done.output
    assert words in done.stdout
    assert all(len(line) < 400 for line in done.stdout.splitlines())


@in_turn(
    "changes, words",
    [
        ({"forward": [10, -10, 10, 10]}, "forward, value 1, must be a whole number of at least 1, not -10"),
        ({"forward": [10, 0, 10, 10]}, "forward, value 1, must be a whole number of at least 1, not 0"),
        ({"forward": [10, 10.5, 10, 10]}, "forward, value 1, must be a whole number of at least 1, not 10.5"),
        ({"forward": [10] * 5}, "forward must be a list with 4 whole numbers, one for each stage, not 5 values"),
        ({"forward": [10, 10, 10, 10**7]}, "forward, value 3, must be at most 1,000,000, not 10000000"),
        ({"memory": [4, 4]}, "memory must be a list with 4 whole numbers, one for each device, not 2 values"),
        ({"latency": [[0, 1], [1, 0]]}, "latency must be one number or a matrix with 4 rows, not a list with 2 values"),
        ({"latency": [[1] * 4] * 4}, "latency must have 0 on the diagonal"),
        ({"microbatches": 10**5}, "1,200,000 operations are too many: an instance has at most 100,000"),
        ({"placement": "v"}, "with 1 chunk the placement is 'loop'"),
        ({"backward": [20] * 4}, "the field 'backward' is not known here"),
        ({"name": "../x"}, "name must have small letters and digits"),
        ({"chunks": 3}, "chunks must be at most 2, not 3"),
    ],
)
def test_an_instance_with_a_fault_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(HybridLabError) as caught:
        read_instance(PROBLEM.to_json() | changes)
    assert words in str(caught.value)


def test_orders_are_verified_with_the_name_of_their_instance(folder: Path) -> None:
    done = json_of("zoo", "verify", "order.txt", "order.csv", "--instance", NAME)
    assert [each["code"] for each in done["files"]] == ["closed", "closed"]
    assert hybridlab("zoo", "verify", "long.csv", "--instance", NAME).exit_code == 1
    done = hybridlab("zoo", "verify", "order.csv")
    assert (done.exit_code, "name its instance with --instance" in done.stdout) == (2, True)
    assert "did you mean" in hybridlab("zoo", "verify", "order.csv", "--instance", "even").stderr


def test_a_record_is_printed_sent_and_verified(folder: Path) -> None:
    """The record of another problem in the place of one that is known to nobody: as if its order were new."""
    tell = ["--by", "A. Turing", "--how", "by hand"]
    done = hybridlab("zoo", "record", NAME, "order.csv", *tell)
    assert (done.exit_code, done.stdout) == (1, ""), "nothing is better than what is known"
    done = hybridlab("zoo", "record", NAME, "long.csv", *tell)
    assert (done.exit_code, done.stdout) == (1, "")
    still_open = next(each for each in instances() if not record(each.name).closed)
    best = record(still_open.name)
    Path("open.txt").write_text(str(best.schedule), encoding="utf-8")
    call = ["zoo", "record", still_open.name, "open.txt", *tell, "--bound", best.bound + 1]
    assert "--bound needs the --program that proved it, or the --source" in hybridlab(*call).stderr
    done = hybridlab(*call, "--source", "a paper")
    assert done.exit_code == 0
    Path("open.json").write_text(done.stdout, encoding="utf-8")
    made = read_record("open.json")
    assert (made.order, made.found, made.bound, made.proven.by, made.proven.reason) == (
        best.order, best.found, best.bound + 1, "A. Turing", "claimed",
    )  # fmt: skip
    done = hybridlab("zoo", "verify", "open.json")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[2:]] == ["known", "sent"]


def test_list_and_show_have_what_the_files_have() -> None:
    listed = json_of("zoo", "list", "--class", "chunks")
    assert listed["version"] == VERSION
    assert [each["instance"] for each in listed["instances"]] == [each.name for each in instances() if each.group == "chunks"]
    assert all(each["makespan"] > each["bound"] for each in json_of("zoo", "list", "--open")["instances"])
    shown = json_of("zoo", "show", NAME)
    assert (shown["instance"], shown["record"], shown["difficulty"]) == (PROBLEM.to_json(), BEST.to_json(), "at once")
    printed = hybridlab("zoo", "show", NAME).stdout
    assert Schedule.parse(printed[printed.index("device 0") :]) == Schedule.parse("\n".join(BEST.order))
    assert "102 instances" in hybridlab("zoo", "list").stdout


def test_solve_writes_the_gaps_and_the_better_records(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybridlab.commands.zoo.zoo.record", lambda name: LONGER if name == NAME else record(name))
    call = ["zoo", "solve", NAME, "puzzle-two-devices", "--seconds", 0, "--csv", "gaps.csv", "--records", "better"]
    assert [each["makespan"] for each in json_of(*call)["instances"]] == [270, 120]
    assert Path("gaps.csv").read_text(encoding="utf-8").splitlines()[1].startswith(f"{NAME},even,4,8,1,4,270,270,0.0,True,330,270,")
    assert [path.name for path in Path("better").iterdir()] == [f"{NAME}.json"]
    assert verify(read_record(f"better/{NAME}.json"), PROBLEM, LONGER).code == "new best"
    assert hybridlab("zoo", "solve").exit_code == 2


# What is sent


@pytest.fixture
def repository(tmp_path: Path) -> Callable[[dict[str, str | None]], str]:
    """Return a function that commits changed records in a copy of the folder of records. It returns the name of the branch."""
    records = tmp_path / changed_records.FOLDER
    records.mkdir(parents=True)
    for path in (FOLDER / "records").glob("even-*.json"):
        (records / path.name).write_bytes(path.read_bytes())

    def git(*words: str) -> None:
        owner = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run([changed_records.GIT, *owner, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "records")

    def branch(changes: dict[str, str | None]) -> str:
        git("switch", "-qC", "sent")
        for name, text in changes.items():
            (records / name).unlink(missing_ok=True) if text is None else (records / name).write_text(text, encoding="utf-8")
        git("add", ".")
        git("commit", "-qm", "a record", "--allow-empty")
        git("switch", "-q", "main")
        return "sent"

    return branch


@in_turn(
    "changes, code, words",
    [
        ({}, 0, "no record is changed"),
        ({f"{NAME}.json": BEST.to_text() + "\n"}, 0, "closed: 270 us"),
        ({f"{NAME}.json": LONGER.to_text()}, 1, "60 us longer than the best known order"),
        ({"even-4x8.json": BEST.to_text()}, 1, "the record is of the instance 'even-4x8-m4'"),
        ({"even-4x8.json": None}, 1, "a record stays"),
        ({"new.json": BEST.to_text()}, 1, "no instance of the zoo has this name"),
        ({f"{NAME}.json": "{"}, 2, "is not JSON"),
    ],
)
@pytest.mark.needs("git")
def test_only_changed_records_are_verified(
    repository: Callable[[dict[str, str | None]], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    changes: Any,
    code: int,
    words: str,
) -> None:
    assert changed_records.check(repository(changes), tmp_path) == code
    printed = capsys.readouterr().out
    assert words in printed
    assert len(printed.splitlines()) <= 4, "of the changed records only"


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with refusal("unknown-name", "'even-4x8m4'", "did you mean 'even-4x8-m4'?"):
        instance("even-4x8m4")
    with refusal("does-not-fit", "it holds 8 activations on device 0"):
        record_of(PROBLEM, build("gpipe", 4, 8), by="me", how="by hand")
