"""Pages load what they use: scripts and styles that a page has no use for go, and so do icons that no page shows.

Everything is cut in the built site, after Sphinx has written it; nothing of the theme's is copied into this project.
"""

import re
import shutil
from pathlib import Path

from icons import cut_icons
from sphinx.application import Sphinx

# what the theme and its extensions put on every page, and the text that only a page with a use for it holds
NEEDED_BY = {
    "fontawesome.js": None,  # draws icons a second time; the font draws them already
    "searchtools.js": 'id="search-results"',
    "language_data.js": 'id="search-results"',
    "searchindex.js": 'id="search-results"',
    "sphinx-design.min.css": 'class="sd-',
    "design-tabs.js": "sd-tab-set",
}
SOURCE_MAP = re.compile(r"\s*(//[#] sourceMappingURL=\S+|/\*[#] sourceMappingURL=.*?\*/)\s*$")


def lightened(page: str) -> str:
    """Return the page without the tags that load what it does not use."""
    for name, mark in NEEDED_BY.items():
        if mark is None or mark not in page:
            page = re.sub(rf'<(?:script|link)\b[^>]*/{re.escape(name)}[?"][^>]*>(?:</script>)?\s*', "", page)
    return page


def lighten(app: Sphinx, failed: Exception | None) -> None:
    """Cut the built site: its pages, the icons, and files that only developers of the theme or readers of Thebe need."""
    if failed or app.builder.format != "html":
        return
    site = Path(app.outdir)
    pages = [path for path in site.rglob("*.html") if path.relative_to(site).parts[0] not in {"_static", "lite"}]
    for page in pages:
        page.write_text(lightened(page.read_text(encoding="utf-8")), encoding="utf-8")
    for each in [*site.glob("_static/**/*.map"), *site.glob("_static/*macros.html"), *site.glob("_static/images/logo_*")]:
        each.unlink()
    shutil.rmtree(site / "_static/locales", ignore_errors=True)
    for each in [*site.glob("_static/*/*.js"), *site.glob("_static/*/*.css")]:
        each.write_text(SOURCE_MAP.sub("\n", each.read_text(encoding="utf-8")), encoding="utf-8")
    cut_icons(site, pages)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", lighten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
