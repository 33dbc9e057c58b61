"""Test that widget scripts that import each other are joined to one ES module; faults in them are refused."""

import re
from pathlib import Path

import pytest
from anywidget import AnyWidget
from cases import in_turn, refusal

from hybridlab import HybridLabError, widgets
from hybridlab.widgets.scripts import HERE, LAST_LINE, FromFiles, script_of, style_sheet

KINDS = {name: getattr(widgets, name) for name in widgets.__all__}
RENDER = f"function render() {{}}\n\n{LAST_LINE}"


def folder_of(folder: Path, **texts: str) -> Path:
    """Write scripts into a folder, by their names without the suffix."""
    for name, text in texts.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return folder


@in_turn("name", KINDS)
def test_a_widget_has_one_module_without_imports(name: str) -> None:
    script = str(KINDS[name]._esm)
    assert re.findall(r"^\s*(?:import|export)\b.*", script, re.MULTILINE) == [LAST_LINE.strip()]
    first = ("const SVG = ", "const WORD = ", "const NUMBER = ")
    assert script.startswith(first), "view.js, orders.js or setting.js comes first, since they import nothing"
    names = re.findall(r"^(?:const|function|async function) (\w+)", script, re.MULTILINE)
    assert len(names) == len(set(names)) > 20


def test_every_script_is_part_of_a_widget_and_every_export_is_imported() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in HERE.glob("*.js")}
    imported = {
        (file, name)
        for text in texts.values()
        for names, file in re.findall(r'import \{([^}]*)\} from "\./(.*)";', text)
        for name in re.findall(r"\w+", names)
    }
    exported = {
        (file, name) for file, text in texts.items() for name in re.findall(r"^export (?:const|function) (\w+)", text, re.MULTILINE)
    }
    assert imported == exported
    assert {file for file, text in texts.items() if not text.endswith(LAST_LINE)} == {file for file, _ in imported}


def test_an_imported_file_comes_first_and_only_once(tmp_path: Path) -> None:
    top = 'import { two } from "./two.js";\nimport { one } from "./one.js";\n\n// starts\nconst all = () => [one, two];\n\n'
    folder = folder_of(
        tmp_path,
        top=top + RENDER,
        two='import {\n  one,\n  other,\n} from "./one.js";\n\nexport function two() {\n  // both\n  return one + other; // a sum\n}\n',
        one="export const one = 1;\nexport async function other() {}\n",
        unused="what? is not read",
    )
    assert script_of("top.js", folder) == (
        "const one = 1;\nasync function other() {}\nfunction two() {\n  return one + other; // a sum\n}\n"
        "const all = () => [one, two];\nfunction render() {}\nexport default { render };\n"
    )


def test_a_new_widget_has_the_edits_of_its_script_and_its_style_sheet(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, top=f'import {{ one }} from "./one.js";\n{RENDER}', one="export const one = 1;\n")
    for name in ("view.css", "own.css"):
        (folder / name).write_text(".hybridlab-view { top: 0 }\n", encoding="utf-8")

    class Own(AnyWidget):
        _esm = FromFiles(script_of, "top.js", folder=folder)
        _css = FromFiles(style_sheet, "own", files=("own.css",), folder=folder)

    assert "const one = 1;" in Own()._esm
    (folder / "one.js").write_text("export const one = 20;\n", encoding="utf-8")
    assert "const one = 20;" in Own()._esm
    (folder / "own.css").write_text(".hybridlab-view { top: 20px }\n", encoding="utf-8")
    assert "top: 20px" in Own()._css


ONE = 'import { one } from "./one.js";'


@in_turn(
    "top, one, code, word",
    [
        ('import { one } from "./ones.js";', "", "unknown-name", "file imported by top.js: 'ones.js': did you mean 'one.js'?"),
        ('import { once } from "./one.js";', "", "unknown-name", "name imported by top.js from one.js: 'once': did you mean 'one'?"),
        ('import { hidden } from "./one.js";', "const hidden = 1;", "unknown-name", "name imported by top.js from one.js: 'hidden'"),
        (ONE, 'import { two } from "./two.js";', "circular-import", "two.js"),
        ('import { top } from "./top.js";\nexport const top = 1;', "", "circular-import", "top.js imports top.js"),
        (ONE + "\nconst one = 2;", "", "duplicate-name", "one.js and top.js both define one, and top.js needs both files"),
        (ONE + "\nconst [two, one] = [2, 1];", "", "duplicate-name", "both define one"),
        (ONE + "\nclass one {}", "", "duplicate-name", "both define one"),
        (ONE + "\nlet other = 1;", "async function other() {}", "duplicate-name", "both define other"),
        ('import one from "./one.js";', "", "unsupported-import", "top.js has 'import one from \"./one.js\";'"),
        ('import * as one from "./one.js";', "", "unsupported-import", "top.js has 'import * as one from"),
        ('import { one as two } from "./one.js";', "", "unsupported-import", "top.js has 'import { one as two } from"),
        ('import { one } from "other/one.js";', "", "unsupported-import", "top.js has 'import { one } from"),
        ('import "./one.js";', "", "unsupported-import", "top.js has 'import \"./one.js\";'"),
        (ONE, "const two = 2;\nexport { two };", "unsupported-import", "one.js has 'export { two };'"),
        (ONE, "export default one;", "unsupported-import", "one.js has 'export default one;'"),
        (ONE, "export const [two, three] = [2, 3];", "unsupported-import", "one.js has 'export const [two, three] = [2, 3];'"),
    ],
)
def test_a_fault_in_a_script_is_refused(tmp_path: Path, top: str, one: str, code: str, word: str) -> None:
    two = f"{ONE}\nexport const two = 2;\n"
    folder = folder_of(tmp_path, top=f"{top}\n{RENDER}", one=f"{one}\nexport const one = 1;\n", two=two)
    with refusal(code, word):
        script_of("top.js", folder)


def test_a_circle_is_told_from_file_to_file(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        top=f"{ONE}\n{RENDER}",
        one='import { two } from "./two.js";\nexport const one = 1;\n',
        two='import { three } from "./three.js";\nexport const two = 2;\n',
        three=f"{ONE}\nexport const three = 3;\n",
    )
    with pytest.raises(HybridLabError) as refused:
        script_of("top.js", folder)
    assert refused.value.code == "circular-import"
    way = str(refused.value).partition(": ")[2].split(" imports ")
    assert way[0] == way[-1]
    assert {(way[place], way[place + 1]) for place in range(3)} == {("one.js", "two.js"), ("two.js", "three.js"), ("three.js", "one.js")}


def test_a_file_without_render_is_no_widget(tmp_path: Path) -> None:
    with refusal("no-render", "top.js"):
        script_of("top.js", folder_of(tmp_path, top="function rendered() {}\n"))


def test_an_unknown_widget_is_refused() -> None:
    with refusal("unknown-name", "'bets.js': did you mean 'bet.js'"):
        script_of("bets.js")


def test_no_class_of_an_element_is_one_that_the_theme_hides_or_lays_out() -> None:
    """The theme of the site is made with Bootstrap: its rules reach elements of views with these classes, also shapes of a picture."""
    scripts = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("*.js"))
    used = {name for names in re.findall(r'class: ["`]([^"`]+)["`]', scripts) for name in names.split()}
    assert used >= {"parcel", "picture", "legend"}
    assert not used & {
        "badge",
        "btn",
        "card",
        "col",
        "collapse",
        "container",
        "alert",
        "fade",
        "invisible",
        "lead",
        "list-group",
        "modal",
        "nav",
    }
