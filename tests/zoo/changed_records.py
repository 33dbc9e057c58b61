"""Verify the records that another commit adds or changes, with the code and the records of this one: only data of that commit are read.

python tests/zoo/changed_records.py COMMIT

Without a commit, our solver proves again what a solver has proven in our own records.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

from hybridlab import HybridLabError
from hybridlab.commands import main
from hybridlab.zoo import instance, read_record

GIT = which("git") or "git"
ROOT = Path(__file__).resolve().parents[2]
FOLDER = "hybridlab/zoo/records/"


def git(*words: str, folder: Path = ROOT) -> bytes:
    return subprocess.run([GIT, "-c", "core.quotePath=false", *words], cwd=folder, check=True, capture_output=True).stdout


def changed(commit: str, folder: Path = ROOT) -> tuple[list[str], list[str]]:
    """Return the records that ``commit`` has added or changed since it left this branch, and sentences about what no record may do."""
    lines = git("diff", "--no-renames", "--name-status", f"HEAD...{commit}", "--", FOLDER, folder=folder).decode().splitlines()
    states = [line.split("\t") for line in lines]
    faults = [f"{path}: a record stays, and a better one takes its place" for state, path in states if state == "D"]
    paths = [path for state, path in states if state != "D"]
    for path in paths:
        try:
            assert path == f"{FOLDER}{instance(Path(path).stem).name}.json", path
        except (AssertionError, HybridLabError):
            faults.append(f"{path}: no instance of the zoo has this name")
    return paths, faults


def wrong_names(commit: str, paths: list[str], sent: Path, folder: Path = ROOT) -> list[str]:
    """Write the records of ``commit`` into the folder ``sent``. Return sentences about records that are of another instance."""
    faults = []
    for path in paths:
        file = sent / Path(path).name
        file.write_bytes(git("show", f"{commit}:{path}", folder=folder))
        try:
            name = read_record(file).instance
        except HybridLabError:
            continue  # `zoo verify` says what is wrong
        if name != file.stem:
            faults.append(f"{path}: the record is of the instance {name!r}")
    return faults


def check(commit: str, folder: Path = ROOT) -> int:
    """Return the exit code: 0 if all records that ``commit`` changes are right and no worse than ours."""
    paths, faults = changed(commit, folder)
    with TemporaryDirectory() as place:
        faults += wrong_names(commit, paths, Path(place), folder) if not faults else []
        if faults or not paths:
            print("\n".join(faults) or "no record is changed")
            return bool(faults)
        return verified(str(Path(place) / Path(path).name) for path in paths)


def verified(files: Iterable[str]) -> int:
    """Return the exit code of the command that verifies records and proves bounds again."""
    try:
        main(["zoo", "verify", "--prove", *files], prog_name="hybridlab")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


if __name__ == "__main__":
    own = sorted(str(path) for path in (ROOT / FOLDER).glob("*.json") if read_record(path).proven.reason == "solver")
    sys.exit(check(sys.argv[1]) if sys.argv[1:] else verified(own))
