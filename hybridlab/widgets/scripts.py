"""Functions that join files into the script and the style sheet of a widget.

The script is one JavaScript module (ES module) with the contents of the widget's file and of all imported files.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from graphlib import CycleError, TopologicalSorter
from os import scandir
from pathlib import Path
from typing import Any, NamedTuple

from hybridlab.checks import known_name
from hybridlab.errors import HybridLabError

HERE = Path(__file__).parent
# Regular expressions are enough, because the scripts use only these forms. _read_script raises an error for all others.
IMPORT = re.compile(r'^import \{\s*(\w+(?:,\s*\w+)*),?\s*\} from "\./(\w+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|(?:async )?function) (\w+))", re.MULTILINE)
ANY_OTHER = re.compile(r"^\s*((?:import|export)\b.*)", re.MULTILINE)
TOP_LEVEL = re.compile(r"^(?:const|let|var|class|(?:async )?function\*?) (?:(\w+)|[\[{](.*)[\]}] =)", re.MULTILINE)
NOT_CODE = re.compile(r"^ *(?://.*)?\n", re.MULTILINE)  # empty lines and comment lines; a page does not need them
LAST_LINE = "export default { render };\n"


class Script(NamedTuple):
    """One JavaScript file: its text without imports and exports, and its names."""

    text: str  # without imports, exports and comment lines
    imports: list[tuple[str, str]]  # (name, file)
    exports: list[str]
    names: list[str]  # names that the file defines at the top level


class FromFiles:
    """A class attribute with the text from ``make``. If a file in the folder has changed, ``make`` builds the text again.

    So after an edit of a script or style sheet, new widgets use the edited file without a restart of the kernel.
    """

    def __init__(self, make: Callable[..., str], *arguments: Any, folder: Path = HERE, **named: Any) -> None:
        self._make = partial(make, *arguments, folder=folder, **named)
        self._folder = folder
        self._built: tuple[object, str] = (None, "")

    def __get__(self, widget: object, kind: type) -> str:
        files = [(each.name, each.stat()) for each in scandir(self._folder) if each.name.endswith((".js", ".css"))]
        # Compare sizes too, because a file system can give two quick edits the same time.
        stamp = sorted((name, stat.st_mtime_ns, stat.st_size) for name, stat in files)
        if stamp != self._built[0]:
            self._built = (stamp, self._make())
        return self._built[1]


def script_of(entry: str, folder: Path = HERE) -> str:
    r"""Return the ES module of a widget: each imported file once, and the widget's own file ``entry`` at the end.

    The joined text has no ``import`` lines, no word ``export``, no comment lines and no empty lines. The rest of each file does not change,
    so the project needs no build tool.

    Parameters
    ----------
    entry : str
        The widget's own file, such as ``"bet.js"``. Its last line is ``export default { render };``.
    folder : Path
        The folder of all scripts.

    Returns
    -------
    str
        The text for anywidget's ``_esm``.

    Raises
    ------
    HybridLabError
        An imported file or name does not exist (``unknown-name``), files import each other in a circle (``circular-import``), two files
        define the same name at the top level (``duplicate-name``), a file has another form of ``import`` or ``export``
        (``unsupported-import``), or ``entry`` has no function ``render`` (``no-render``).

    Examples
    --------
    >>> script_of("bet.js").endswith("}\nexport default { render };\n")
    True
    >>> script_of("bat.js")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: unknown script 'bat.js': did you mean 'bet.js'? Known: ...
    """
    scripts = _all_imported(entry, folder)
    for name, script in scripts.items():
        for each, file in script.imports:
            known_name(each, scripts[file].exports, f"name imported by {name} from {file}:")
    try:
        order = list(TopologicalSorter({name: [file for _, file in script.imports] for name, script in scripts.items()}).static_order())
    except CycleError as why:
        circle = " imports ".join(reversed(why.args[1]))
        raise HybridLabError(f"scripts import each other in a circle: {circle}", "circular-import") from None
    # The joined files share one scope. A second definition of a name would be an error, or replace the first definition.
    owners: dict[str, str] = {}
    for name in order:
        for each in scripts[name].names:
            if owners.setdefault(each, name) != name:
                both = f"{owners[each]} and {name} both define {each}"
                raise HybridLabError(f"{both}, and {entry} needs both files: rename {each} in one of them", "duplicate-name")
    if "render" not in scripts[entry].names:
        raise HybridLabError(f"{entry} is not a widget: it has no function render", "no-render")
    # Each file comes after its imported files, so every ``const`` is defined before its use.
    return "".join(scripts[name].text for name in order) + LAST_LINE


def style_sheet(kind: str, *, files: Iterable[str], folder: Path = HERE) -> str:
    """Return the text of a view's style sheet: the shared ``view.css``, then the view's own ``files`` in their order.

    In the files, the rules are for elements of the class ``hybridlab-view``. In the returned text, the rules are for the class of the view.
    So a page with several kinds of views has the shared rules once for each kind, and no kind changes the look of another kind. A selector
    begins with one class and not with several: then a browser tries it on the elements inside such views alone.

    Parameters
    ----------
    kind : str
        The kind of views that use the style sheet. For example, ``"mesh"`` means elements of the class ``hybridlab-mesh``.
    files : iterable of str
        Names of the view's own files.
    folder : Path
        The folder of all style sheets.

    Examples
    --------
    >>> style_sheet("mesh", files=["mesh_view.css"]).count(".hybridlab-view")
    0
    """
    text = "\n".join((folder / name).read_text(encoding="utf-8") for name in ("view.css", *files))
    return text.replace(".hybridlab-view", f".hybridlab-{kind}")


def _read_script(path: Path) -> Script:
    """Return the text and the names of a file. Raise an error for forms of ``import`` and ``export`` that cannot be joined."""
    source = path.read_text(encoding="utf-8").removesuffix(LAST_LINE)  # script_of writes this line once, at the end
    text = NOT_CODE.sub("", EXPORT.sub("", IMPORT.sub("", source)))
    if other := ANY_OTHER.search(text):
        forms = 'import { name } from "./file.js"; and export before a const or a function'
        raise HybridLabError(f"{path.name} has {other[1]!r}; the forms that can be joined are {forms}", "unsupported-import")
    imports = [(name, file) for names, file in IMPORT.findall(source) for name in re.findall(r"\w+", names)]
    names = [name for one, several in TOP_LEVEL.findall(text) for name in re.findall(r"\w+", one or several)]
    return Script(text, imports, EXPORT.findall(source), names)


def _all_imported(entry: str, folder: Path) -> dict[str, Script]:
    """Return the scripts by name: ``entry`` and all files that it imports directly or indirectly."""
    known = sorted(path.name for path in folder.glob("*.js"))
    scripts: dict[str, Script] = {}
    waiting = [known_name(entry, known, "script")]
    while waiting:
        name = waiting.pop(0)
        if name not in scripts:  # several files can import the same file, or files can import each other in a circle
            scripts[name] = _read_script(folder / name)
            waiting += [known_name(file, known, f"file imported by {name}:") for _, file in scripts[name].imports]
    return scripts
