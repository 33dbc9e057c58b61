"""Compute the luminance and the contrast of colours, as WCAG 2.2 defines them."""

import numpy as np
from matplotlib.colors import to_rgb


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (WCAG 2.2)."""
    linear = np.where((rgb := np.array(to_rgb(colour))) <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
