"""What all commands of ``hybridlab`` share: the group, its exit codes, errors as sentences, results as JSON, and progress."""

import contextlib
import json
import math
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, NoReturn

import click
import numpy as np

from hybridlab.course.grading.escaping import for_log
from hybridlab.errors import HybridLabError

DONE, FAILED, USAGE, NO_SANDBOX, NEEDS_PERSON, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 130, 143  # shells use 130 and 143, too
EXIT_CODES = {"no-sandbox": NO_SANDBOX}  # the exit code for each error code; for all other error codes it is USAGE
EXIT_CODES |= dict.fromkeys(("gate-failed", "deadlock", "device-failed", "device-gone", "device-hangs", "not-started"), FAILED)

_QUOTES = "'\""
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
# a value of an argument in a sentence: 'device', 'stage' or 'microbatch'; {"F": "forward"}; ("1f1b", 2); 0.5; True
_VALUE = rf"""(?:{_QUOTED.pattern})(?:(?:, | or )(?:{_QUOTED.pattern}))*|\{{[^{{}}]*\}}|\([^()]*\)|[0-9][0-9.]*(?<!\.)|True|False"""

json_option = click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON object. Notes go to standard error.")


class Terminated(SystemExit):
    """The end of a command after SIGTERM."""


class CommandLine(click.Group):
    """The group of all commands. Every end has an exit code and, if something is wrong, a sentence."""

    def main(self, *arguments: Any, **named: Any) -> Any:
        """Run a command as click does, also where standard output is full, closed, or cannot write a character."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # for the names of files that are not UTF-8
                stream.reconfigure(errors="backslashreplace")
        try:
            return super().main(*arguments, **named)
        except OSError as why:  # click itself ends silently if the reader of a pipe has ended, as after ``| head``
            _tell(f"{why.filename or 'the output'} cannot be written: {why.strerror or why}")
            # at its end Python writes again what is left in the buffer, and would fail with a code of its own
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(USAGE)


def with_examples(*lines: str) -> str:
    """Return the end of a command's help: the examples, one a line."""
    return "\n".join(["\b", "Examples:", *(f"  hybridlab {line}" for line in lines)])  # click keeps the lines after \\b


def report_errors(command: Callable[..., int | None]) -> Callable[..., None]:
    """Return a command that prints its errors as sentences. The return value of the function becomes the exit code."""

    @wraps(command)
    def run(*arguments: Any, **named: Any) -> None:
        _leave_tidily_when_terminated()
        try:
            code = command(*arguments, **named) or DONE
        except HybridLabError as why:
            for line in str(why).splitlines():
                _tell(in_options(for_log(line, 2000)))  # more characters than in reports, because the end of an error says what to do
            code = EXIT_CODES.get(why.code or "", USAGE)
        except KeyboardInterrupt:
            _tell("interrupted")
            code = INTERRUPTED
        except Terminated:
            _tell("ended by the signal SIGTERM: what was not yet printed or written is lost")
            code = TERMINATED
        sys.exit(code)

    return run


def in_options(sentence: str, command: click.Command | None = None) -> str:
    """Return a sentence of the library with the options of a command in place of the arguments that have the same names.

    Without ``command``, it is the command that runs.

    >>> example = click.Command("example", params=[click.Option(["--per"]), click.Option(["--held-after"]), click.Option(["--events"])])
    >>> in_options("held_after is 2: take held_after=0.5, or leave per out", example)
    '--held-after is 2: take --held-after 0.5, or leave --per out'
    >>> in_options("give per='stage' or 'device', as in rank(costs, per='stage')", example)
    'give --per stage or device, as in --per stage'
    >>> in_options('take events={"F": "forward", "B": "backward_step"}, per="stage"', example)
    'take --events F=forward --events B=backward_step --per stage'
    """
    context = click.get_current_context(silent=True)
    command = command or (context.command if context else None)
    options = {each.name: each for each in (command.params if command else ()) if isinstance(each, click.Option) and each.name}
    names = {name: f"--{name.replace('_', '-')}" for name in options}
    names = {name: text for name, text in names.items() if text in options[name].opts}  # --csv is no argument of the library
    if not names:
        return sentence

    def option(found: re.Match[str]) -> str:
        return _written(options[found[1]], names[found[1]], found[2])

    one = "|".join(names)
    sentence = re.sub(rf"\b({one})=({_VALUE})", option, sentence)
    # a bare name can be a word of English, unless it has an underscore
    sentence = re.sub(
        rf"(leave (?=\w+ out)|leave out the argument |choose (?:one with )?|\b(?=[a-z]+_))({one})\b",
        lambda found: found[1] + names[found[2]],
        sentence,
    )
    sentence = re.sub(r"(--[\w-]+ [^\s,]+), (?=--)", r"\1 ", sentence)
    return re.sub(r"\b\w+\([^()\n]*?(--[^()\n]*)\)", r"\1", sentence)  # rank(costs, --per stage) is no call


def _written(option: click.Option, name: str, value: str) -> str:
    """Return an option with a value that is written as in Python."""
    if value in ("True", "False"):
        return name if value == "True" else next(iter(option.secondary_opts), f"no {name}")
    if value.startswith("{"):
        return " ".join(f"{name} {kind}={shlex.quote(each)}" for kind, each in re.findall(r"""["'](\w+)["']: ["']([^"']*)["']""", value))
    if value.startswith("("):
        first, _, second = value.strip("()").partition(", ")
        return f"{name} {first.strip(_QUOTES)} --chunks {second}"  # schedule=("1f1b", 2)
    return f"{name} {value if value[0] not in _QUOTES else _QUOTED.sub(lambda found: shlex.quote(found[0][1:-1]), value)}"


def _tell(sentence: str) -> None:
    """Print a sentence on standard error, unless it is full or closed."""
    with contextlib.suppress(OSError):
        click.echo(sentence, err=True)


def _leave_tidily_when_terminated() -> None:
    """Let SIGTERM raise an error, so that temporary files are removed and workers are ended. Slurm and ``timeout`` send this signal."""

    def leave(number: int, frame: object) -> NoReturn:
        raise Terminated(TERMINATED)

    with contextlib.suppress(ValueError):  # only the main thread of a program can handle signals
        signal.signal(signal.SIGTERM, leave)


def print_results(results: Mapping[str, Any], text: str, as_json: bool) -> None:
    """Print the results of a command: as one JSON object, or as text."""
    click.echo(json.dumps(plain(results), indent=1, allow_nan=False) if as_json else text)


def plain(value: Any) -> Any:
    """Return a value as JSON has it: numbers that are not finite become None, and other objects become texts.

    >>> plain({"peaks": np.array([1.0, np.nan]), "limits": (1, ValueError("a"))})
    {'peaks': [1.0, None], 'limits': [1, 'a']}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return list(map(plain, value)) if isinstance(value, Iterable) else str(value)


@contextlib.contextmanager
def progress_on_terminal(length: int, what: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows progress on standard error. The function shows nothing if standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda item: None
        return
    with click.progressbar(length=length, label=what, file=sys.stderr) as bar:
        yield lambda item: bar.update(1)


@click.group(cls=CommandLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hybridlab", prog_name="hybridlab")
def main() -> None:
    """Start, check, hand in and mark labs on hybrid parallel training. Make and compare schedules for measured times.

    Exit codes: 0 done; 1 a check or a condition failed; 2 the command or a file was not right; 3 there is no sandbox, and nothing was
    graded; 4 a submission needs a person; 130 interrupted (Ctrl-C); 143 ended (SIGTERM).
    """
