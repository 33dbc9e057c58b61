"""Test the commands that pages tell readers to run: hybridlab's commands and options, make's targets, and what pip can install."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
from cases import in_turn

import hybridlab
from hybridlab.commands import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "book").glob("*.md")))]
PAGES += [str(path.relative_to(ROOT)) for path in sorted((ROOT / "book/templates").iterdir())]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
NAMED = {re.split(r"[\[<>=!~ ]", each)[0] for each in (*PROJECT["dependencies"], *(each for some in EXTRAS.values() for each in some))}
NAMED = NAMED - {"hybridlab"} | {"pre-commit", "executorlib", "parsl", "ray"}  # what the project itself does not need
WHEEL = f"./hybridlab-{hybridlab.__version__}-py3-none-any.whl"
BLOCK = re.compile(r"^(`{3,})(\w+)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:pip|hybridlab|make|python -m pip)\s[^`]+)`")
SHELLS = {"sh", "bash", "console", "powershell", "bat"}


def commands_on(page: str) -> Iterator[list[str]]:
    """Yield the words of each command: lines of blocks for a shell, lines of templates, and code inside sentences."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [(language, block) for _, language, block in BLOCK.findall(text)] if page.endswith(".md") else [("sh", text)]
    lines = []
    for language, block in blocks:
        joined = block.replace("\\\n", " ")
        prompts = [line.removeprefix("$ ") for line in joined.splitlines() if language != "console" or line.startswith("$ ")]
        lines += prompts if language in SHELLS else []
    lines += [" ".join(each.split()) for each in INLINE.findall(text)] if page.endswith(".md") else []
    for line in (each for each in lines if not each.strip().startswith(("#", "echo "))):
        found = re.search(r"(?:^|[\s|&;(/\\])(hybridlab|make|pip(?: install| wheel)|[\w./\\-]*python\S* -m pip)(?=\s).*", line)
        if found and "=" not in found[0].split()[0]:
            yield shlex.split(found[0].strip(" |&;(/\\").split(" #")[0].split(" >")[0].split(" <")[0].replace("\\", "/"))


def options_of(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}


def check_hybridlab(words: list[str]) -> None:
    if words[1] == "--help" or words[1] == "--version":
        return
    command: click.Command = main
    for place, word in enumerate(words[1:], start=1):
        if isinstance(command, click.Group):
            assert word in command.commands, f"{' '.join(words[:place])} has no command {word}"
            command = command.commands[word]
    known = options_of(command)
    unknown = [word for word in words[2:] if word.startswith("--") and word.split("=")[0] not in known]
    assert not unknown, f"hybridlab {words[1]} has no {unknown}"


def check_install(words: list[str]) -> None:
    """hybridlab itself is in no package index, so it comes from the folder or from a wheel."""
    given = iter(words)
    for word in given:
        if word in ("-r", "--requirement"):
            assert (ROOT / next(given)).exists()
        elif not word.startswith("-"):
            name, _, extras = word.partition("[")
            assert name in (".", WHEEL) or name in NAMED, f"pip cannot install {word}"
            assert all(extra in EXTRAS for extra in extras.rstrip("]").split(",") if name in (".", WHEEL) and extra), word


@in_turn("page", PAGES)
def test_every_command_of_a_page_can_be_run(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for words in commands_on(page):
        if words[0] == "hybridlab" and len(words) > 1:
            check_hybridlab(words)
        elif words[0] == "make":
            targets = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
            assert all(re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE) for target in targets), words
        elif "install" in words:
            check_install(words[words.index("install") + 1 :])


def test_errors_and_labs_name_what_pip_can_install() -> None:
    """Whoever reads these has installed hybridlab, so pip only adds the packages of an extra."""
    files = [*(ROOT / "hybridlab").rglob("*.py"), *(ROOT / "labs").glob("*.ipynb")]
    found = {name: path.name for path in files for name in re.findall(r"pip install '?([\w\[\]{},.-]+)", path.read_text(encoding="utf-8"))}
    assert len(found) > 5
    for name, file in found.items():
        package, _, extras = name.rstrip(".").partition("[")
        known = package in NAMED or (package == "hybridlab" and all(extra in {*EXTRAS, "{}"} for extra in extras.rstrip("]").split(",")))
        assert known, f"{file}: pip cannot install {name}"


def test_commands_are_found() -> None:
    """The pages have many commands, and a wrong one is noticed."""
    found = [" ".join(words[:2]) for page in PAGES for words in commands_on(page)]
    assert {"hybridlab rank", "hybridlab start", "make lab", "pip install", "pip wheel"} <= set(found)
    assert len(found) > 60


def test_every_target_that_the_makefile_explains_is_on_a_page() -> None:
    explained = re.findall(r"^# +(make [a-z-]+)", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(explained) > 10
    assert set(explained) <= {" ".join(words[:2]) for page in ("README.md", "CONTRIBUTING.md") for words in commands_on(page)}
