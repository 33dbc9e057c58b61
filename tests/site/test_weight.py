"""Test how many bytes a first visit of a lab transfers.

Every file that the browser requests is counted as a public server would send it.
"""

from pathlib import Path
from typing import Any

from browser import weight_of

MOST = 1_000_000  # bytes


def test_a_lab_weighs_at_most_a_megabyte(new_page: Any, server: str, site: Path, lab: str) -> None:
    page = new_page(server + lab)
    page.evaluate("document.fonts.ready")  # the last file that a page requests
    sizes = weight_of(page, site, server)
    pictures = {".png"} if page.locator("article img[src$='.png']").count() else set()
    assert {".css", ".html", ".js", ".woff2"} | pictures <= {Path(name).suffix for name in sizes}
    heaviest = ", ".join(f"{name} {size / 1e3:.0f} kB" for name, size in sorted(sizes.items(), key=lambda each: -each[1])[:6])
    assert sum(sizes.values()) <= MOST, f"{sum(sizes.values()) / 1e3:.0f} kB: {heaviest}"
