"""The figure that all others are: it shows itself in a notebook, the same bytes each time, and says what it shows."""

from functools import lru_cache
from io import BytesIO
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from PIL import Image

WIDTH = 7.2  # inches; in a column of 720 pixels a point of text is 1.4 of them
MARGIN = 0.08
DPI = 160  # shown at 100 a notebook's picture is sharp on finer screens too
COLOURS = 64  # of a stored picture: a third of the bytes of true colour, and no difference to be seen
FONT = "DejaVu Sans"  # comes with matplotlib, so that a figure is the same on every machine
INK, MUTED, RULE = "#1F2328", "#59636E", "#D8DEE4"


class Picture(Figure):
    """A matplotlib Figure that a notebook shows by itself; ``alt_text`` says in words what can be seen in it."""

    def __init__(self, height: float, alt_text: str) -> None:
        super().__init__(figsize=(WIDTH, height), dpi=DPI, facecolor="white", edgecolor="none")
        self.set_layout_engine("none")  # whatever the reader's settings say
        self.alt_text = alt_text

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        drawn, packed = BytesIO(), BytesIO()
        self.savefig(drawn, format="png", dpi=DPI)
        few = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        few.save(packed, format="png", optimize=True)
        return packed.getvalue(), {"width": round(100 * WIDTH)}

    def __repr__(self) -> str:
        """Return the figure in words: stored outputs of notebooks are compared by it."""
        return f"<Figure: {self.alt_text}>"


def page(figure: Picture) -> Axes:
    """Add axes over the whole figure, measured in inches from its upper left corner, and return them."""
    return sheet(figure, 0, 0, WIDTH, figure.get_figheight(), WIDTH)


def sheet(figure: Picture, left: float, top: float, width: float, height: float, span: float) -> Axes:
    """Add bare axes and return them: x from 0 to ``span``, y in inches from their top. The rest is in inches."""
    whole = figure.get_figheight()
    place = (left / WIDTH, 1 - (top + height) / whole, width / WIDTH, height / whole)
    axes = figure.add_axes(place, xlim=(0, span), ylim=(height, 0))
    axes.set_axis_off()
    return axes


def write(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Put ``text`` at ``x``, ``y``, in the one font of all figures."""
    defaults: dict[str, Any] = {"size": 9, "color": INK, "fontfamily": FONT, "parse_math": False}
    axes.text(x, y, text, **(defaults | style))


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return how many inches ``text`` is wide.

    >>> text_width("microbatch 10", size=9) < text_width("microbatch 10", size=9, bold=True) < 1.1
    True
    """
    font = FontProperties(family=FONT, weight="bold" if bold else "normal")
    # at a fixed size, so that widths grow exactly with the size; a bar at each end keeps spaces
    both, bars = (TextPath((0, 0), each, size=100, prop=font).get_extents().width for each in (f"|{text}|", "||"))
    return float(both - bars) / 100 * size / 72
