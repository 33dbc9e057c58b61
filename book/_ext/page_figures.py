"""Puts the figures of notebooks into the pages as SVG, in colours that follow the page's light or dark mode.

The kernels return each figure as SVG (see `executed.py`). In the page, the shapes and texts of a figure are elements like all others:
they have the theme's colours, their text can be selected, and screen readers read the description that the cell gives.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from docutils import nodes

from hybridlab.palette import line_style
from hybridlab.plot.bars import IDLE
from hybridlab.plot.panel import ACTIVATION_FILL
from hybridlab.plot.picture import INK, MUTED, RULE

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
PATH, USE, DEFS, TEXT, GROUP = (f"{SVG}{name}" for name in ("path", "use", "defs", "text", "g"))
HREF = f"{XLINK}href"
BLACK, WHITE = "#000000", "#ffffff"
FONTS = "'DejaVu Sans', Verdana, sans-serif"  # texts in Verdana are nearly as wide as in DejaVu Sans, which has set the sizes
# the colours that differ between light and dark pages; those of operations and rings do not, nor does the text on them
THEME = {
    INK.lower(): f"var(--pst-color-text-base, {INK})",
    MUTED.lower(): f"var(--pst-color-text-muted, {MUTED})",
    RULE.lower(): f"var(--pst-color-border, {RULE})",
    WHITE: f"var(--pst-color-background, {WHITE})",
    IDLE["facecolor"].lower(): f"light-dark({IDLE['facecolor']}, #1B2026)",
    IDLE["edgecolor"].lower(): f"light-dark({IDLE['edgecolor']}, #4F5862)",
    ACTIVATION_FILL.lower(): f"light-dark({ACTIVATION_FILL}, #464E58)",
}
LINES = {style.colour.lower(): f"light-dark({style.colour}, {style.on_dark})" for style in map(line_style, range(6))} | THEME
DIGITS, NUMBERS = re.compile(r"\d+\.\d{3,}"), {"d", "x", "y", "transform", "width", "height"}
RECTANGLE = re.compile(r"M (\S+) (\S+) L (\S+) \2 L \3 (\S+) L \1 \4 z")
REFERENCE = re.compile(r"url\(#([^)]+)\)")
# on a phone the whole figure is shown first, and this makes it as wide as on other screens
ENLARGE = '<label class="enlarge"><input type="checkbox" /> Enlarge the figure</label>'


def on_page(svg: str, alt: str, prefix: str) -> str:
    """Return the HTML of a figure that matplotlib wrote as SVG.

    ``alt`` is its description. ``prefix`` is unique to the figure on its page: the names in the SVG begin with it.
    """
    root = ET.fromstring(svg)  # noqa: S314 - our own figure
    # the title is the alternative text, which `alt` says, too; the rule of the style would hold for the whole page
    for part in (f"{SVG}metadata", f"{SVG}title", f"{DEFS}[{SVG}style]"):
        for child in root.findall(part):
            root.remove(child)
    flatten(root)
    recolour(root)
    rename(root, prefix)
    shorten(root)
    box = root.attrib["viewBox"]
    ratio = " / ".join(box.split()[2:])  # by this ratio, a browser reserves the height of a figure that it has not drawn yet
    style = f"aspect-ratio: {ratio}; stroke-linejoin: round; stroke-linecap: butt; font-family: {FONTS}"
    root.attrib = {"role": "img", "aria-label": alt, "viewBox": box, "style": style}
    ET.register_namespace("", SVG.strip("{}"))
    return f'<div class="figure-on-page">{ET.tostring(root, encoding="unicode")}{ENLARGE}</div>'


def flatten(root: ET.Element) -> None:
    """Replace each use of a shape that is used once by the shape itself: matplotlib writes every bar as a shape and its use."""
    uses = Counter(use.get(HREF) for use in root.iter(USE))
    parents = {child: parent for parent in root.iter() for child in parent}
    shapes = {f"#{shape.get('id')}": shape for shape in root.iter(PATH) if shape.get("id")}
    for use in list(root.iter(USE)):
        name = use.get(HREF)
        if uses[name] > 1:
            continue
        shape, parent = shapes[name], parents[use]
        parents[shape].remove(shape)
        place, style = f"translate({use.get('x')} {use.get('y')})", written(parsed(use) | parsed(shape))
        drawn = ET.Element(PATH, {"d": shape.attrib["d"], "transform": place, "style": style})
        parent[list(parent).index(use)] = drawn
    for parent in list(root.iter()):
        for empty in [each for each in parent if each.tag == DEFS and not len(each)]:
            parent.remove(empty)


def recolour(root: ET.Element) -> None:
    """Give shapes and texts the colours of the page. Bars, the marks on them and their texts keep their colours."""
    for ground in root.findall(f".//{SVG}rect[@fill]"):  # of a hatch
        ground.set("style", f"fill: {THEME[ground.attrib.pop('fill')]}")
    for each in root.iter():
        style = parsed(each)
        if each.tag not in {PATH, USE, TEXT} or not style:
            continue
        fill, stroke = style.get("fill", BLACK), style.get("stroke")
        if each.tag == TEXT:
            del style["font-family"]
            if each.get("transform", "").startswith("rotate(-0 "):
                del each.attrib["transform"]
        on_a_bar = fill in {BLACK, WHITE} if each.tag == TEXT else "stroke-opacity" in style
        if not on_a_bar:
            if "fill" in style or not each.get("id"):  # a shape without a fill takes that of the element that uses it
                style["fill"] = (LINES if fill == stroke else THEME).get(fill, fill)
            if stroke:
                style["stroke"] = (LINES).get(stroke, stroke)
        each.set("style", written(style))


def rename(root: ET.Element, prefix: str) -> None:
    """Add the prefix to the ids that something refers to, so that they are unique on the page, and remove all other ids."""
    names = set()
    for each in root.iter():
        if HREF in each.attrib:
            names.add(name := each.attrib.pop(HREF).removeprefix("#"))
            each.set("href", f"#{prefix}{name}")
        for key, value in each.attrib.items():
            names |= set(REFERENCE.findall(value))
            each.set(key, REFERENCE.sub(rf"url(#{prefix}\1)", value))
    for each in root.iter():
        name = each.attrib.pop("id", None)
        if name in names:
            each.set("id", f"{prefix}{name}")


def shorten(root: ET.Element) -> None:
    """Remove digits, white space, groups without attributes and repeated coordinates of rectangles, none of which a reader can see."""
    for each in root.iter():
        for key in NUMBERS & set(each.attrib):
            each.set(key, DIGITS.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), " ".join(each.attrib[key].split())))
        if "d" in each.attrib:
            each.set("d", RECTANGLE.sub(r"M\1 \2H\3V\4H\1z", each.attrib["d"]))
        each.tail = None
        if each.tag != TEXT:
            each.text = None
        while bare := [child for child in each if child.tag == GROUP and not child.attrib]:
            place = list(each).index(bare[0])
            each[place : place + 1] = list(bare[0])


def parsed(element: ET.Element) -> dict[str, str]:
    """Return the style of an element by property."""
    return {key.strip(): value.strip() for key, _, value in (each.partition(":") for each in element.get("style", "").split(";") if each)}


def written(style: dict[str, str]) -> str:
    return "; ".join(f"{key}: {value}" for key, value in style.items())


def is_still(image: nodes.image) -> bool:
    """Return whether this is the still picture of a widget, which live_widgets shows where scripts do not run."""
    bundle = image.parent.parent
    forms = [form for form in bundle.children if isinstance(form, nodes.Element)] if bundle else []
    return any(form.get("mime_type") == "application/vnd.jupyter.widget-view+json" for form in forms)


def put_in(app: Sphinx, doctree: nodes.document) -> None:
    """Replace the images of a page that are SVG files of notebooks by the SVG itself, before Sphinx collects the images."""
    numbers = count(1)
    for image in list(doctree.findall(nodes.image)):
        if image["uri"].endswith(".svg") and not is_still(image):
            svg = Path(app.srcdir, image["uri"].lstrip("/")).read_text(encoding="utf-8")
            alt = image.get("alt") or ET.fromstring(svg).findtext(f"{SVG}title", "")  # noqa: S314 - our own figure
            image.replace_self(nodes.raw("", on_page(svg, alt, f"figure{next(numbers)}-"), format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", put_in, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
