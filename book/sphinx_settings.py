"""Write Sphinx's own settings, conf.py, from `_config.yml` and `_toc.yml`, for a build without Jupyter Book.

`python book/sphinx_settings.py FOLDER` writes FOLDER/conf.py. `make book-next` builds the book from it with the newest Sphinx.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
# parts of Jupyter Book, and what it loads for books with numbered parts, with comments, with cells to run on a server, and in LaTeX
LEFT_OUT = {"jupyter_book", "sphinx_comments", "sphinx_jupyterbook_latex", "sphinx_multitoc_numbering", "sphinx_thebe"}
# Sphinx looks for these files from the folder of conf.py, which is not that of the book
ADDED = """
import sys
root = {root!r}
sys.path += {paths!r}
extensions = [name for name in extensions if name not in {left_out!r}]
html_favicon = f"{{root}}/{{html_favicon}}"
html_static_path = [f"{{root}}/{{path}}" for path in html_static_path]
bibtex_bibfiles = [f"{{root}}/{{path}}" for path in bibtex_bibfiles]
"""


def added(config: str, root: Path = ROOT) -> str:
    """Return the lines that conf.py needs beside those that Jupyter Book writes."""
    paths = {str(root / path) for path in yaml.safe_load(config)["sphinx"]["local_extensions"].values()}
    return ADDED.format(paths=sorted(paths), left_out=sorted(LEFT_OUT), root=str(root))


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    config = shutil.copy(ROOT / "_config.yml", folder)  # Jupyter Book writes conf.py beside it
    command = [Path(sys.executable).with_name("jupyter-book"), "config", "sphinx", ROOT, "--config", config, "--toc", ROOT / "_toc.yml"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own program
    with (folder / "conf.py").open("a", encoding="utf-8") as file:
        file.write(added(Path(config).read_text(encoding="utf-8")))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
