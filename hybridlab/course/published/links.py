"""The time of a message between two stages on real links. The published sweeps do not say which links have their latencies.

The model of the sweeps takes 400 ms for a forward. A model of 32 layers of width 4096 takes as long for 4096 tokens, if an A100 reaches
42 % of its peak. Here a message has the activations of these tokens.

>>> from hybridlab.hardware import A100_80GB
>>> round(32 * 24 * WIDTH**2 * TOKENS / A100_80GB.matmul_flops / 0.4, 2)
0.42
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from hybridlab.checks import one_time, short_repr
from hybridlab.collectives import Link
from hybridlab.course.published.zero_bubble import RUNS
from hybridlab.errors import HybridLabError
from hybridlab.hardware import A100_80GB, gigabits

if TYPE_CHECKING:
    from hybridlab.plot import Picture

TOKENS, WIDTH = 4096, 4096
NBYTES = 2 * TOKENS * WIDTH  # 16 bits for each number of the activations

# The first two latencies are those of NCCL in src/graph/tuning.cc (ring, protocol Simple). The other links are in CrossPipe, sec. 2.3: the
# slowest of two campuses, and the fastest of two regions.
LINKS: Mapping[str, Link] = MappingProxyType(
    {
        "NVLink of an A100": Link(11.8e-6, A100_80GB.nccl_nvlink or A100_80GB.nvlink),
        "InfiniBand of an A100": Link(22.4e-6, A100_80GB.network),
        "two campuses, 40 km apart": Link(200e-6, gigabits(200)),
        "one region of a cloud": Link(1e-3, gigabits(11.3)),
        "two regions, at least": Link(30e-3, gigabits(5)),
    }
)


@dataclass(frozen=True, repr=False)
class RealLinks:
    """The times of a message on real links, in ms and in forwards. The value prints as a table.

    Parameters
    ----------
    forwards : tuple of float
        Times of a forward, ms.
    """

    forwards: tuple[float, ...]

    @property
    def times(self) -> Mapping[str, float]:
        """The time of a message of ``NBYTES`` bytes in ms, by the name of the link."""
        return {name: 1e3 * (link.latency + NBYTES / link.bandwidth) for name, link in LINKS.items()}

    def __repr__(self) -> str:
        head = "".join(f"{f'F = {forward:g}':>11}" for forward in self.forwards)
        lines = [f"a message of {NBYTES / 1e6:.0f} MB{'ms':>17}{head}"]
        for name, time in self.times.items():
            shares = "".join(f"{time / forward:9.3f} F" for forward in self.forwards)
            lines.append(f"{name:27}{time:8.2f}{shares}")
        run = RUNS[0]
        share = run.latency / run.forward
        return "\n".join([*lines, f"measured on A100s{run.latency:18.2f}   {share:.3f} of a forward of {run.forward:.1f} ms"])

    def mark(self, figure: "Picture") -> "Picture":
        """Draw a vertical line at the time of a message into each plot of a figure with the latency on the x-axis, and return the figure.

        Links that are slower than the end of the axis are left out. The first plot and the text of the figure name the others.

        Raises
        ------
        HybridLabError
            ``figure`` is not a figure of :mod:`hybridlab.plot`.
        """
        from hybridlab.plot import Picture  # loads matplotlib

        if not isinstance(figure, Picture):
            raise HybridLabError(f"mark needs a figure of hybridlab.plot, not {short_repr(figure)}", "wrong-type")
        plots = [axes for axes in figure.axes if axes.axison]
        inside = {name: time for name, time in self.times.items() if time <= plots[0].get_xlim()[1]}
        for axes in plots:
            for time in inside.values():
                axes.axvline(time, color="#59636E", linewidth=0.7, linestyle=(0, (1, 1.5)), zorder=0.5)
        gap = 0.05 * plots[0].get_xlim()[1]
        for time, names in _beside(inside, gap):
            height = plots[0].get_xaxis_transform()  # from 0 at the axis to 1 at the top
            plots[0].text(time + gap / 8, 0.98, names, transform=height, rotation=90, va="top", ha="left", fontsize=8, color="#59636E")
        told = ", ".join(f"{name} {time:.2f} ms" for name, time in inside.items())
        figure.alt_text += f" Dotted lines: {told}."
        return figure


def _beside(times: Mapping[str, float], gap: float) -> list[tuple[float, str]]:
    r"""Return places for names on the axis: marks that are closer than ``gap`` share one place, at the last of them.

    >>> _beside({"NVLink of an A100": 0.15, "InfiniBand of an A100": 1.36, "one region of a cloud": 24.8}, 1.6)
    [(1.36, 'NVLink\nInfiniBand'), (24.8, 'one region')]
    """
    places: list[tuple[float, str]] = []
    for name, time in times.items():
        short = name.partition(" of ")[0].partition(",")[0]
        if places and time - places[-1][0] <= gap:
            places[-1] = time, f"{places[-1][1]}\n{short}"
        else:
            places.append((time, short))
    return places


def real_links(*forwards: float) -> RealLinks:
    """Return the times of a message between two stages on real links, to be shown beside a sweep of latencies.

    Parameters
    ----------
    forwards : float
        Times of a forward on one device in ms. There is a column for each.

    Raises
    ------
    HybridLabError
        A time is not a positive number.

    References
    ----------
    NVLink and InfiniBand: :mod:`hybridlab.hardware`. Two data centres: Chen et al., CrossPipe, USENIX ATC 2025, arXiv 2507.00217, sec. 2.3.
    Measured: Qi et al., arXiv 2401.10241, Table 9, the first row. The latency of a network of many switches is up to tens of microseconds:
    Llama 3, arXiv 2407.21783, sec. 3.3.3.

    Examples
    --------
    >>> real_links(200, 12.5)
    a message of 34 MB               ms    F = 200   F = 12.5
    NVLink of an A100              0.15    0.001 F    0.012 F
    InfiniBand of an A100          1.36    0.007 F    0.109 F
    two campuses, 40 km apart      1.54    0.008 F    0.123 F
    one region of a cloud         24.76    0.124 F    1.980 F
    two regions, at least         83.69    0.418 F    6.695 F
    measured on A100s              0.60   0.032 of a forward of 18.5 ms
    """
    times = tuple(one_time(forward, "forward") for forward in forwards)
    if not all(times):
        raise HybridLabError(f"a forward takes more than 0 ms, not {short_repr(forwards)}", "too-small")
    return RealLinks(times)
