"""The base of all figures: the class ``Picture``, common sizes and colours, and functions that write texts and numbers."""

from functools import lru_cache
from io import BytesIO, StringIO
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import text_to_path
from PIL import Image

from hybridlab.checks import checked_text, one_time, short_repr
from hybridlab.errors import HybridLabError

WIDTH = 7.2  # inches; on a web page with 720 pixels for a figure, one point of text takes 1.4 pixels
MARGIN = 0.08  # inches between the edge of a figure and its texts
HIGHEST = 400  # inches; matplotlib draws up to 2**16 dots
DPI = 160  # a notebook shows 100 dots per inch; more dots are sharper on screens with small pixels
COLOURS = 64  # number of colours in a stored picture; looks like true colour, with a third of the bytes
FONT = "DejaVu Sans"  # part of matplotlib, so that a figure is the same on every machine
INK, MUTED, RULE = "#1F2328", "#59636E", "#D8DEE4"


class Picture(Figure):
    """A matplotlib Figure that a notebook shows as the value of a cell.

    Parameters
    ----------
    height : float
        Height in inches. All figures have the same width.
    alt_text : str
        A description of the figure in words.

    Raises
    ------
    HybridLabError
        ``height`` is not one number above zero and up to 400, or ``alt_text`` is not a text.
    """

    def __init__(self, height: float, alt_text: str) -> None:
        checked_text(alt_text, "alt_text")
        if not 0 < one_time(height, "height") <= HIGHEST:
            raise HybridLabError(f"height must be above zero and at most {HIGHEST} inches, not {short_repr(height)}", "out-of-range")
        super().__init__(figsize=(WIDTH, height), dpi=DPI, facecolor="white", edgecolor="none")
        self.set_layout_engine("none")  # overrides the user's matplotlib settings
        self.alt_text = alt_text

    def _repr_png_(self) -> tuple[bytes, dict[str, int | str]]:
        return self.png(), {"width": round(100 * WIDTH), "alt": self.alt_text}

    def png(self, dpi: int = DPI) -> bytes:
        """Return the figure as PNG in 64 colours, with ``dpi`` dots in an inch."""
        drawn, packed = BytesIO(), BytesIO()
        self.savefig(drawn, format="png", dpi=dpi)
        few = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        few.save(packed, format="png", optimize=True)
        return packed.getvalue()

    def svg(self) -> str:
        """Return the figure as SVG without a background. Texts stay texts, and equal figures give equal SVG. The title is ``alt_text``.

        >>> from hybridlab import Costs, build, plot, simulate
        >>> figure = plot.timeline(simulate(build("1f1b", 2, 2), Costs(forward=1, backward=2)))
        >>> "1F1B, 2 devices, 2 microbatches</text>" in figure.svg(), figure.svg() == figure.svg()
        (True, True)
        """
        drawn = StringIO()
        # fonttype "none" stores texts as texts. A fixed salt and no date give the same ids and bytes in every run.
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "hybridlab"}):
            self.savefig(drawn, format="svg", facecolor="none", metadata={"Date": None, "Creator": None, "Title": self.alt_text})
        return drawn.getvalue()

    def __repr__(self) -> str:
        """Return the figure in words. Tests compare this text with the stored outputs of the notebooks."""
        return f"<Figure: {self.alt_text}>"


def page(figure: Picture) -> Axes:
    """Return new axes without ticks over the whole figure. x and y are inches from the upper left corner."""
    return sheet(figure, 0, 0, WIDTH, figure.get_figheight(), WIDTH)


def sheet(figure: Picture, left: float, top: float, width: float, height: float, span: float) -> Axes:
    """Return new axes without ticks in a rectangle of the figure. x runs from 0 to ``span``, and y runs downwards in inches.

    All arguments except ``span`` are in inches. ``left`` and ``top`` count from the upper left corner of the figure.
    """
    axes = figure.add_axes(rectangle(figure, left, top, width, height), xlim=(0, span), ylim=(height, 0))
    axes.set_axis_off()
    return axes


def rectangle(figure: Picture, left: float, top: float, width: float, height: float) -> tuple[float, float, float, float]:
    """Return (left, bottom, width, height) of a rectangle as shares of the figure, the form that matplotlib needs.

    The arguments are in inches, and ``left`` and ``top`` count from the upper left corner of the figure.
    """
    whole = figure.get_figheight()
    return left / WIDTH, 1 - (top + height) / whole, width / WIDTH, height / whole


def write(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write ``text`` at ``x``, ``y`` in the font of all figures. ``style`` has text properties of matplotlib."""
    defaults: dict[str, Any] = {"size": 9, "color": INK, "fontfamily": FONT, "parse_math": False}
    axes.text(x, y, text, **(defaults | style))


# Cached, because the layout of a figure measures the same names many times.
@lru_cache(maxsize=4096)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return the width of ``text`` in inches. ``size`` is in points.

    >>> text_width("microbatch 10", size=9) < text_width("microbatch 10", size=9, bold=True) < 1.1
    True
    """
    # "|" before and after the text, so that spaces at its ends count.
    return (_ink_width(f"|{text}|", bold) - _ink_width("||", bold)) / 100 * size / 72


@lru_cache(maxsize=4096)
def _ink_width(barred: str, bold: bool) -> float:
    """Return the width of a text that begins and ends with "|", at 100 points. One fixed size keeps widths proportional to the size."""
    font = FontProperties(family=FONT, weight="bold" if bold else "normal")
    points, codes = text_to_path.get_text_path(font, barred)
    # the smallest and the largest x belong to the two "|"; control points of curves lie between them
    x = np.asarray(points)[np.not_equal(codes, Path.CLOSEPOLY), 0]
    return float(x.max() - x.min())


def number(value: float) -> str:
    """Return a number as text with up to six significant digits, the form of all numbers in figures.

    >>> number(33.0), number(0.1 + 0.2)
    ('33', '0.3')
    """
    return f"{value:.6g}"


def after_a_number(unit: str | None) -> str:
    """Return the text after a time: a space and the unit, or an empty text without a unit."""
    return f" {unit}" if unit else ""
