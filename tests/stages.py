"""Run stages of the checks one after the other, all of them even if one fails, then print a table: `python tests/stages.py lint types`.

A stage is a target of the Makefile. The table has the tests that ran, the CPU seconds of all processes, and the seconds on the clock. Its
last line is the speed of the machine: the seconds of a loop of ten million additions, below 1.0 on a quick one.
"""

import os
import re
import resource
import subprocess
import sys
import time
from dataclasses import dataclass

PASSED = re.compile(rb"^(?:=* ?)(?:\d+ \w+, )*?(\d+) passed.* in [\d.]+s", flags=re.MULTILINE)  # the last line of pytest
COLOURS = re.compile(rb"\x1b\[[\d;]*m")


@dataclass(frozen=True)
class Stage:
    """A stage that has run: its target, its exit status, how many tests passed, CPU seconds, and seconds on the clock."""

    name: str
    status: int
    tests: int
    cpu: float
    clock: float


def cpu_of_children() -> float:
    """Return the CPU seconds of all processes that have ended and were waited for, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(name: str) -> Stage:
    """Make a target; what it prints appears at once."""
    print(f"\n== {name}", flush=True)
    cpu, begun = cpu_of_children(), time.monotonic()
    command = [os.environ.get("MAKE", "make"), "--no-print-directory", name]
    command += ["--old-file=book-check"] * (name == "site-check")  # the stage before it has built the site
    setting = os.environ | ({"FORCE_COLOR": "1"} if sys.stdout.isatty() else {})
    printed = bytearray()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=setting) as stage:
        assert stage.stdout
        while more := os.read(stage.stdout.fileno(), 1 << 16):
            printed += more
            sys.stdout.buffer.write(more)
            sys.stdout.buffer.flush()
    tests = sum(int(count) for count in PASSED.findall(COLOURS.sub(b"", bytes(printed))))
    return Stage(name, stage.returncode, tests, cpu_of_children() - cpu, time.monotonic() - begun)


def table(stages: list[Stage]) -> str:
    """Return the table of these stages, with a line for all of them.

    >>> print(table([Stage("lint", 0, 0, 3.21, 2.0), Stage("unit", 2, 1200, 100.0, 61.0)]))
    stage           tests     CPU s   clock s
    lint                -       3.2       2.0
    unit             1200     100.0      61.0  failed
    all              1200     103.2      63.0
    """
    total = Stage("all", 0, sum(s.tests for s in stages), sum(s.cpu for s in stages), sum(s.clock for s in stages))
    head = f"{'stage':<14}{'tests':>7}{'CPU s':>10}{'clock s':>10}"
    rows = [
        f"{each.name:<14}{each.tests or '-':>7}{each.cpu:>10.1f}{each.clock:>10.1f}{'  failed' * bool(each.status)}"
        for each in [*stages, total]
    ]
    return "\n".join([head, *rows])


def speed() -> float:
    """Return the seconds of a loop of ten million additions."""
    begun = time.perf_counter()
    exec("x = 0\nfor _ in range(10_000_000): x += 1", {})  # noqa: S102 - at the level of a module, which has no quick local names
    return time.perf_counter() - begun


def main(names: list[str]) -> int:
    """Run these stages; return 0 if all passed, otherwise 1."""
    stages = [run(name) for name in names]
    print(f"\n{table(stages)}\nA loop of ten million additions takes {speed():.2f} s here.")
    failed = [stage.name for stage in stages if stage.status]
    print(f"Failed: {', '.join(failed)}." if failed else "Every check passed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
