"""Call the command line in a test. No call may end in a traceback, and one with --json prints nothing but one object."""

import json
import subprocess
from collections.abc import Mapping
from typing import Any

import click
from click.testing import CliRunner, Result

from hybridlab.commands import main

LONG = 60.0  # seconds that no test has to wait


def hybridlab(*arguments: object, stdin: str | bytes | None = None, variables: Mapping[str, str | None] | None = None) -> Result:
    """Run a command in this process, and return its exit code and what it printed."""
    done = CliRunner(env=variables).invoke(main, [str(each) for each in arguments], input=stdin, prog_name="hybridlab")
    if not isinstance(done.exception, SystemExit | None):
        raise AssertionError("the command ended in an error that nobody told in a sentence") from done.exception
    assert "Traceback" not in done.stderr
    return done


def json_of(*arguments: object, **more: Any) -> Any:
    """Run a command with --json, and return the object that it prints."""
    done = hybridlab(*arguments, "--json", **more)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout, parse_constant=lambda name: 1 / 0)  # NaN is no JSON


def every_command() -> dict[str, click.Command]:
    """Return all commands by their names. A command of a group has two words, such as "zoo list"."""
    found: dict[str, click.Command] = {}
    for name, command in main.commands.items():
        inside = command.commands.items() if isinstance(command, click.Group) else [("", command)]
        found |= {f"{name} {word}".strip(): each for word, each in inside}
    return found


def end_of(command: "subprocess.Popen[str]", seconds: float = LONG) -> tuple[str, str]:
    """Wait for the end of a command in a process of its own, and return what it printed and what it said."""
    printed, told = command.communicate(timeout=seconds)
    assert "Traceback" not in told, told
    return printed, told
