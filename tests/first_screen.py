"""Draw the first picture of README again: `python tests/first_screen.py`."""

from pathlib import Path

from hybridlab import REGISTRY, Costs, build, plot, simulate

PICTURE = Path(__file__).parents[1] / "book/_assets/first_screen.png"


def first_screen() -> bytes:
    """Return a PNG that shows 1F1B above ZB-H1: 4 devices, 8 microbatches, a backward twice as long as a forward.

    The picture must not give away the answer to a lab's bet.
    """
    costs = Costs(forward=1, backward=2, unit=None)
    timelines = {REGISTRY[name].title: simulate(build(name, devices=4, microbatches=8), costs) for name in ("1f1b", "zb-h1")}
    png, _ = plot.compare(timelines)._repr_png_()
    return png


if __name__ == "__main__":
    PICTURE.write_bytes(first_screen())
