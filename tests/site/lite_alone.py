"""Run the first cells of labs in a browser that reaches no other host than the site: `python tests/site/lite_alone.py FOLDER`.

The folder is JupyterLite's, `_build/html/lite`, built with HYBRIDLAB_PYTHON. A lab fails if a cell shows an error, if it asks another host
for anything, or if it shows no output.
"""

import sys
from pathlib import Path

from browser import FLAGS, NO_CHROMIUM, PATIENCE, program, serving
from playwright.sync_api import Browser, sync_playwright

LABS = ("lab01_mesh.ipynb", "lab07_accuracy.ipynb")  # the second lab needs scikit-learn, too
START = 10 * PATIENCE  # a slow machine takes minutes to start Python
ACTIVE = ".jp-Notebook .jp-Cell.jp-mod-active"
# a cell whose code is folded has no number: that of a later cell says that it ran
UNFOLDED = "(cell) => cell.matches('.jp-CodeCell') && cell.querySelector('.jp-InputPrompt').textContent.trim() !== ''"
NUMBERED = "(cell) => /\\d/.test(cell.querySelector('.jp-InputPrompt').textContent)"
SHOWN = "(cell) => [...cell.querySelectorAll('.jp-OutputArea-output')].map((each) => [each.dataset.mimeType ?? '', each.innerText])"


def outputs(browser: Browser, root: str, lab: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Run a lab up to the first cell whose code is not folded; return the outputs, each with its type, and the requests to other hosts."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(START)
    outside: list[str] = []
    context.on("request", lambda request: None if request.url.startswith((root, "data:", "blob:")) else outside.append(request.url))
    page = context.new_page()
    page.goto(f"{root}lab/index.html?path={lab}")
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
    ran, numbered = [], 0
    while numbered < 2:  # the first number is that of the cell which installs the packages
        cell = page.locator(ACTIVE).element_handle()
        page.keyboard.press("Shift+Enter")
        ran.append(cell)
        if cell.evaluate(UNFOLDED):
            page.wait_for_function(NUMBERED, arg=cell)
            numbered += 1
        page.wait_for_function("([cell, active]) => document.querySelector(active) !== cell", arg=[cell, ACTIVE])
    shown = [output for cell in ran for output in cell.evaluate(SHOWN)]
    context.close()
    return shown, outside


def main(folder: Path) -> None:
    """Run the labs, and end with a sentence for the first one that fails."""
    if not (folder / "static/pyodide").is_dir():
        sys.exit(f"There is no Python in {folder}: build the site with HYBRIDLAB_PYTHON=download make book.")
    if program() is None:
        sys.exit(NO_CHROMIUM)
    with serving(folder) as root, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=FLAGS, timeout=PATIENCE)
        for lab in LABS:
            shown, outside = outputs(browser, root, lab)
            wrong = [text for kind, text in shown if "error" in kind or "stderr" in kind]
            if wrong or outside or not shown:
                sys.exit("\n".join([f"{lab} does not run in the browser:", *wrong, *(f"it asks for {url}" for url in outside)]))
            print(f"{lab} runs in the browser, with {len(shown)} outputs and no request to another host", flush=True)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
