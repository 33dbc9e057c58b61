"""Changes the site after Sphinx has written it: pages load only the files they use, and some faults in the theme's HTML are corrected.

No file of the theme is copied into this project: the files are changed in the built site.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from icons import cut_icons
from reachable import MENDED, mended
from sphinx.errors import ExtensionError

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

# files that the theme and its extensions load on every page; a page that needs the file contains the text beside it
NEEDED_BY = {
    "fontawesome.js": None,  # draws icons a second time; the font draws them already
    "searchtools.js": 'id="search-results"',
    "language_data.js": 'id="search-results"',
    "searchindex.js": 'id="search-results"',
    "sphinx-design.min.css": 'class="sd-',
    "design-tabs.js": "sd-tab-set",
}
# the theme has colours for "light" and "dark", none for "auto"; its script sets the value anew, so only pages without scripts keep this one
WITHOUT_SCRIPTS = re.compile(r'(<html\b[^>]*?)(?: data-theme="auto")?>')
# for developers of the theme, for Thebe, and for sites in other languages
UNUSED = ("_static/**/*.map", "_static/*macros.html", "_static/images/logo_*")
SOURCE_MAP = re.compile(r"\s*(//# sourceMappingURL=\S+|/\*# sourceMappingURL=.*?\*/)\s*$")

# the theme's script measures and changes each box that may scroll, one after the other, which lays out the page as many times, and does
# so again after every change of a widget; keyboard.js does the same in one pass
BOXES_THAT_SCROLL = re.compile(r'"complete"===document\.readyState\?(\w+)\(\):window\.addEventListener\("load",\1\)')

# the site's address without a page leads to the first page; the redirect that Sphinx writes has no language, title or icon
FRONT = """<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1.0"><title>{title}</title>
<meta name="description" content="{title}: this address leads to the first page.">{canonical}
<link rel="icon" href="{icon}"><meta http-equiv="refresh" content="0; url={first}">
</head>
<body><h1><a href="{first}">{title}</a></h1></body>
</html>
"""


def tag_of(name: str) -> re.Pattern[str]:
    """Return the pattern of the tag that loads a file of this name."""
    return re.compile(rf'<(?:script|link)\b[^>]*["/]{re.escape(name)}[?"][^>]*>(?:</script>)?\s*')


def lightened(page: str) -> str:
    """Return the page without the tags that load what it does not use."""
    for name, mark in NEEDED_BY.items():
        if mark is None or mark not in page:
            page = tag_of(name).sub("", page)
    return page


def coloured(page: str) -> str:
    """Return the page with the colours of light pages for browsers that run no scripts."""
    return WITHOUT_SCRIPTS.sub(r'\1 data-theme="light">', page, count=1)


def check_theme(pages: Iterable[str]) -> None:
    """Raise an ExtensionError if a tag or a fault is on none of the pages: the theme has changed."""
    whole = "\n".join(pages)
    missing = [each.pattern for each in (*map(tag_of, NEEDED_BY), *(fault for fault, _ in MENDED)) if not each.search(whole)]
    if missing:
        told = "the theme's pages have changed; adapt book/_ext/finish.py and reachable.py, which look for"
        raise ExtensionError(f"{told}: {'; '.join(missing)}")


def without_boxes(script: str) -> str:
    """Return the theme's script without the part that makes boxes reachable by the keyboard; raise an ExtensionError if it has none."""
    cut, found = BOXES_THAT_SCROLL.subn("0", script)
    if found != 1:
        raise ExtensionError(f"the theme's script has changed; adapt book/_ext/finish.py, which looks for {BOXES_THAT_SCROLL.pattern}")
    return cut


def finish(app: Sphinx, failed: Exception | None) -> None:
    """Cut and mend the built site: its pages, the icons, and files that nothing loads."""
    if failed or app.builder.format != "html":
        return
    site = Path(app.outdir)
    paths = [path for path in site.rglob("*.html") if path.relative_to(site).parts[0] not in {"_static", "lite"}]
    written = {path: path.read_text(encoding="utf-8") for path in paths}
    check_theme(written.values())
    pages = {path: coloured(mended(lightened(page))) for path, page in written.items()}
    for path, page in pages.items():
        path.write_text(page, encoding="utf-8")
    first = f"{app.config.root_doc}.html"
    icon = f"_static/{Path(app.config.html_favicon).name}"
    title = app.config.html_title or app.config.project
    address = app.config.html_baseurl
    canonical = f'<link rel="canonical" href="{address}{first}">' if address else ""
    front = FRONT.format(language=app.config.language, title=title, icon=icon, first=first, canonical=canonical)
    (site / "index.html").write_text(front, encoding="utf-8")
    for each in [path for pattern in UNUSED for path in site.glob(pattern)]:
        each.unlink()
    shutil.rmtree(site / "_static/locales", ignore_errors=True)
    for each in [*site.glob("_static/*/*.js"), *site.glob("_static/*/*.css")]:
        each.write_text(SOURCE_MAP.sub("\n", each.read_text(encoding="utf-8")), encoding="utf-8")
    script = site / "_static/scripts/pydata-sphinx-theme.js"
    script.write_text(without_boxes(script.read_text(encoding="utf-8")), encoding="utf-8")
    cut_icons(site, pages.values())


def every_page(app: Sphinx, env: BuildEnvironment) -> set[str]:
    """Return every page, so that Sphinx writes all of them if one has changed: :func:`finish` cannot start from pages it has changed."""
    return set(env.all_docs)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("env-updated", every_page)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
