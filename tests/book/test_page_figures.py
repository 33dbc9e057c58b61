"""Test how a figure gets into a page: its shapes and texts are those that matplotlib drew, and its colours are those of the page."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from xml.etree import ElementTree as ET

import pytest
from cases import in_turn
from page_figures import LINES, THEME, flatten, on_page

from hybridlab import Costs, build, hybrid_step, plot, simulate
from hybridlab.palette import KIND_COLOURS, SPAN_COLOURS, shade_colour
from hybridlab.plot import Picture

SVG = "{http://www.w3.org/2000/svg}"
HEX = re.compile(r"#[0-9a-fA-F]{6}\b")
ON_EVERY_PAGE_ALIKE = {"#000000", "#ffffff"} | {colour.lower() for colour in (*KIND_COLOURS.values(), *SPAN_COLOURS.values())}


def curves(count: int = 6) -> Picture:
    return plot.lines([1, 2, 4], {f"line {each}": [each, 2 * each, 5] for each in range(count)}, x_label="x", y_label="y")


FIGURES = {
    "timeline": lambda: plot.timeline(simulate(build("1f1b", 4, 8), Costs(forward=1, backward=2))),
    "shades": lambda: plot.timeline(simulate(build("interleaved", 2, 4, chunks=4), Costs(forward=1, backward=2))),
    "step": lambda: plot.timeline(
        hybrid_step(build("zb-h1", 2, 4), Costs(forward=1, backward=2, p2p=0.5), 2, ring_step=1, optimiser=1).timeline
    ),
    "lines": curves,
    "parts": lambda: plot.stacks({"a": {"one": 1, "two": 2}, "b": {"one": 3, "two": 1}}, x_label="x"),
}


each_figure = in_turn("name", FIGURES)


@cache
def drawn(name: str) -> str:
    """Return a figure as SVG, drawn once for all tests."""
    return FIGURES[name]().svg()


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - our own figure


def shown(svg: str, prefix: str = "figure1-", alt: str = "words") -> ET.Element:
    html = on_page(svg, alt, prefix)
    return parsed(html)[0]


def styles(root: ET.Element) -> Iterable[tuple[ET.Element, dict[str, str]]]:
    for each in root.iter():
        yield each, dict(re.findall(r"([\w-]+):\s*([^;]+)", each.get("style", "")))


@each_figure
def test_texts_are_those_that_matplotlib_drew_at_their_places(name: str) -> None:
    before, after = (list(root.iter(f"{SVG}text")) for root in (parsed(drawn(name)), shown(drawn(name))))
    assert [each.text for each in after] == [each.text for each in before] != []
    for axis in ("x", "y"):
        assert [float(each.attrib[axis]) for each in after] == pytest.approx([float(each.attrib[axis]) for each in before], abs=0.005)


@each_figure
def test_all_shapes_are_there_and_bars_are_no_longer_uses(name: str) -> None:
    def points(root: ET.Element) -> Counter[str]:
        paths = [each.attrib["d"] for each in root.iter(f"{SVG}path")]
        # the corners of a rectangle that the page writes as one corner and the coordinates of the opposite one
        paths = [re.sub(r"M(\S+) (\S+)H(\S+)V(\S+)H\1z", r"M \1 \2 L \3 \2 L \3 \4 L \1 \4 z", each) for each in paths]
        return Counter(
            " ".join(re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), path).split()) for path in paths
        )

    before, after = parsed(drawn(name)), shown(drawn(name))
    assert points(after) == points(before)
    used = Counter(each.attrib["href"] for each in after.iter(f"{SVG}use"))
    assert all(count > 1 for count in used.values())


@each_figure
def test_every_name_is_used_and_begins_with_the_prefix(name: str) -> None:
    root = shown(drawn(name), "figure7-")
    names = [each.attrib["id"] for each in root.iter() if "id" in each.attrib]
    text = ET.tostring(root, encoding="unicode")
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
    assert sorted(names) == sorted(used)
    assert all(name.startswith("figure7-") for name in names)
    assert "<style" not in text
    assert "metadata" not in text


@each_figure
def test_a_colour_is_that_of_an_operation_or_follows_the_page(name: str) -> None:
    shades = {shade_colour(kind, shade, count).lower() for kind in KIND_COLOURS for count in range(1, 9) for shade in range(count)}
    themed = {*THEME.values(), *LINES.values()}
    for each, style in styles(shown(drawn(name))):
        assert not any(HEX.search(value) for key, value in each.attrib.items() if key != "style")
        for part in ("fill", "stroke"):
            colour = style.get(part, "none")
            if colour in themed or colour == "none" or colour.startswith("url("):
                continue
            assert HEX.fullmatch(colour), colour
            assert colour in ON_EVERY_PAGE_ALIKE | shades
            if colour == "#000000":  # text on a bar, or the mark of a kind
                assert each.tag == f"{SVG}text" or "stroke-opacity" in style


def test_a_black_line_and_its_markers_are_light_on_a_dark_page() -> None:
    dark = [style for _, style in styles(shown(drawn("lines"))) if "#E6EDF3" in str(style)]
    assert {"none", "light-dark(#000000, #E6EDF3)"} <= {style.get("fill") for style in dark}, "the line, and its filled markers"


def test_the_figure_is_an_image_with_its_description() -> None:
    root = shown(drawn("parts"), alt='5 < 6 & "so" on')
    assert (root.get("role"), root.get("aria-label")) == ("img", '5 < 6 & "so" on')
    assert not {"width", "height"} & set(root.attrib), "the page decides how large it is"


def test_a_shape_that_is_used_once_stands_in_the_place_of_its_use_and_another_stays_a_shape() -> None:
    shapes = '<defs><path id="once" d="M0 0"/><path id="twice" d="M1 1"/></defs>'
    uses = "".join(f'<g><use xlink:href="#{name}" x="{x}" y="2"/></g>' for name, x in (("once", 1), ("twice", 2), ("twice", 3)))
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    root = parsed(f"<svg {names}>{shapes}{uses}</svg>")
    flatten(root)
    assert [
        (each.tag.removeprefix(SVG), each.get("d"), each.get("transform"))
        for each in root.iter()
        if each.tag in (f"{SVG}path", f"{SVG}use")
    ] == [
        ("path", "M1 1", None),
        ("path", "M0 0", "translate(1 2)"),
        ("use", None, None),
        ("use", None, None),
    ]
