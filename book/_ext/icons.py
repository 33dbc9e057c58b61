"""Cuts Font Awesome down to the icons that the site uses: the theme loads all 2,000 on every page, 0.7 MB.

The theme draws its icons twice, with a font and with a script. Here the script is removed and the font is kept, with two groups of
icons: those that pages and scripts name (``fa-list``), and those that style sheets contain as characters. The built site shows both.
"""

import io
import re
from collections.abc import Iterable
from pathlib import Path

from sphinx.errors import ExtensionError

SHEET = Path("_static/styles/pydata-sphinx-theme.css")
FONTS = Path("_static/vendor/fontawesome/webfonts")
SCRIPT = Path("_static/scripts/fontawesome.js")
OLD_FORMAT = re.compile(r',url\([^)]*\.ttf\) format\("truetype"\)')
ICON = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"\\?([^"]+)"\}')
NAME = re.compile(r"\bfa-[a-z0-9-]+")
CHARACTER = re.compile(r"\\([ef][0-9a-f]{3})|([\ue000-\uf8ff])")


def names_in_page(page: str) -> set[str]:
    """Return the names of Font Awesome in the classes of a page's elements."""
    return {name for classes in re.findall(r'\sclass="([^"]*)"', page) for name in NAME.findall(classes)}


def code_point(content: str) -> int:
    """Return the character that a rule's content stands for: ``f03a``, ``30 `` or ``K``."""
    text = content.strip()
    return ord(text) if len(text) == 1 else int(text, 16)


def cut_sheet(sheet: str, names: Iterable[str]) -> tuple[str, set[int]]:
    """Return the style sheet with the rules of the named icons only, and the characters of those icons.

    Rules for sizes and styles, such as ``fa-lg``, are not icons, and all of them stay.

    Raises:
        ExtensionError: the sheet has no rule for a name.
    """
    icons = {name: code_point(content) for rule, content in ICON.findall(sheet) for name in NAME.findall(rule)}
    rest = ICON.sub("", sheet)
    unknown = sorted(set(names) - set(icons) - set(NAME.findall(rest)))
    if unknown:
        raise ExtensionError(f"the site uses icons that the theme's Font Awesome does not have: {', '.join(unknown)}")
    used = set(names) & set(icons)
    kept = ICON.sub(lambda rule: rule[0] if used & set(NAME.findall(rule[1])) else "", sheet)
    return OLD_FORMAT.sub("", kept), {icons[name] for name in used}


def characters_in(sheet: str) -> set[int]:
    """Return the characters of Unicode's private area in a style sheet: Font Awesome's icons are in that area."""
    return {int(escaped, 16) if escaped else ord(plain) for escaped, plain in CHARACTER.findall(sheet)}


def cut_font(font: bytes, characters: set[int]) -> tuple[bytes, set[int]]:
    """Return the font in the format WOFF2, cut to the given characters, and the characters that it contains."""
    from fontTools.subset import Options, Subsetter  # imported here, because it takes half a second
    from fontTools.ttLib import TTFont

    options = Options(flavor="woff2", layout_features=[], notdef_outline=True)
    with TTFont(io.BytesIO(font)) as whole:
        present = characters & set(whole.getBestCmap())
        subsetter = Subsetter(options)
        subsetter.populate(unicodes=present)
        subsetter.subset(whole)
        cut = io.BytesIO()
        whole.save(cut)
    return cut.getvalue(), present


def cut_icons(site: Path, pages: Iterable[str]) -> None:
    """Cut the theme's style sheet and fonts in the built site.

    Raises:
        ExtensionError: an icon is used and not available.
    """
    (site / SCRIPT).unlink(missing_ok=True)
    names = set().union(*(names_in_page(page) for page in pages))
    for script in site.glob("_static/**/*.js"):
        names |= set(NAME.findall(script.read_text(encoding="utf-8")))
    sheet, characters = cut_sheet((site / SHEET).read_text(encoding="utf-8"), names)
    (site / SHEET).write_text(sheet, encoding="utf-8")
    for each in site.glob("_static/**/*.css"):
        characters |= characters_in(each.read_text(encoding="utf-8"))
    drawn: set[int] = set()
    for font in (site / FONTS).glob("*.woff2"):
        cut, present = cut_font(font.read_bytes(), characters)
        font.write_bytes(cut)
        font.with_suffix(".ttf").unlink(missing_ok=True)
        drawn |= present
    if characters - drawn:
        missing = ", ".join(f"{each:x}" for each in sorted(characters - drawn))
        raise ExtensionError(f"the site uses icons that no font of the theme has: {missing}")
