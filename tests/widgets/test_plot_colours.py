"""Test the colours of figures: texts are readable, and kinds of operations differ for colour-blind readers, too."""

from itertools import combinations, product

import numpy as np
import numpy.typing as npt
from cases import in_turn
from colours import contrast
from matplotlib.colors import to_rgb

from hybridlab.palette import KIND_COLOURS, shade_colour
from hybridlab.plot.picture import INK, MUTED


@in_turn("kind, chunks", product(KIND_COLOURS, (1, 2, 5)))
def test_black_text_is_readable_on_every_bar(kind: str, chunks: int) -> None:
    assert min(contrast("#000000", shade_colour(kind, chunk, chunks)) for chunk in range(chunks)) >= 4.5


@in_turn("colour", [INK, MUTED])
def test_text_is_readable_on_white(colour: str) -> None:
    assert contrast(colour, "#FFFFFF") >= 4.5


# Matrices from linear RGB to the colours that dichromats see, from Viénot, Brettel and Mollon (1999).
DICHROMATS = {
    "protan": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
    "deutan": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
}


@in_turn("one, other, seen", [(*pair, seen) for pair in combinations(KIND_COLOURS, 2) for seen in DICHROMATS.values()])
def test_kinds_differ_for_the_colour_blind(one: str, other: str, seen: list[list[float]]) -> None:
    def lab(kind: str) -> npt.NDArray[np.float64]:
        rgb = np.array(to_rgb(KIND_COLOURS[kind]))
        linear = np.clip(np.array(seen) @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4), 0, 1)
        to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
        x, y, z = np.cbrt(to_xyz @ linear / [0.9505, 1, 1.089])
        return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])

    assert np.linalg.norm(lab(one) - lab(other)) > 15  # CIE 1976; 2.3 is just noticeable
