"""Figures for the still pictures of two widgets, and the line below every still picture."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from hybridlab.checks import counted
from hybridlab.plot.picture import INK, MARGIN, MUTED, RULE, WIDTH, Picture, number, page, write

CHOSEN = "#24292F"  # no colour of the page's theme, so it stays dark below white numbers in dark mode, too
LINE = 0.22  # inches; height of a line of text
KIND_STYLES = {"activations": ("#0072B2", "-", "A"), "gradients": ("#C05000", "--", "G"), "ring": ("#007A59", ":", "R")}


def with_line(picture: Picture, line: str) -> Picture:
    """Make a figure higher by one line of text, write the line at the bottom, and return the figure."""
    before = picture.get_figheight()
    height = before + LINE + MARGIN
    for axes in picture.axes:
        left, bottom, width, tall = axes.get_position().bounds
        axes.set_position((left, (bottom * before + LINE + MARGIN) / height, width, tall * before / height))
    picture.set_figheight(height)
    write(page(picture), MARGIN, height - MARGIN - 0.04, line, size=8, color=MUTED)
    return picture


# ---- rings ----

# The colours of the ranks in the ring stepper (ring_stepper.css). All have contrast to black text.
RANK_COLOURS = ("#56B4E9", "#E69F00", "#F0E442", "#2FB48C", "#D9A0C3", "#E88A4F", "#A9B6FF", "#C2C2C2")
BOX, ROW, SLOT = (0.66, 0.46), 0.54, (0.15, 0.13)  # inches: a box (width, height), from a row to the next one, a slot
HEAD, RANKS_LEFT = 0.46, 0.9  # inches: title and names above the boxes; names on the left of them
MARK_COLOURS = {"": MUTED, "whole": "#007A59", "lost": "#B3261E"}
RING_KEY = "A coloured square: the number of this rank is in the sum below. Each rank begins with 2 to the power of its own number."


def ring_matrix(states: Mapping[str, Any], step: str) -> Picture:
    """Return a figure of rings after a step: for each ring a row for each chunk and a column for each rank.

    The small squares in a box show whose numbers the chunk holds, and the number below them is the sum.

    Parameters
    ----------
    states : mapping of str to dict
        Name of a ring -> its state, as :attr:`RingStepper.states` returns it.
    step : str
        The name of the step, for the title.
    """
    ranks = len(next(iter(states.values()))["values"])
    tall = HEAD + ROW * ranks
    words = [f"{name}: {counted(state['whole'], 'whole sum')} of {ranks * ranks}. {state['sent']}" for name, state in states.items()]
    figure = Picture(MARGIN + tall * len(states) + 0.3, f"Chunks of {ranks} ranks, step {step}. {' '.join(words)}")
    paper = page(figure)
    for place, (name, state) in enumerate(states.items()):
        write(paper, MARGIN, MARGIN + tall * place + 0.14, f"{name}, step {step}", size=10.5, weight="bold")
        _draw_chunks(paper, MARGIN + tall * place + HEAD, state, ranks)
    write(paper, MARGIN, MARGIN + tall * len(states) + 0.12, RING_KEY, size=8, color=MUTED)
    return figure


def _draw_chunks(paper: Axes, top: float, state: Mapping[str, Any], ranks: int) -> None:
    """Draw the boxes of a ring below ``top``, with the names of ranks above them and the names of chunks on their left."""
    pitch = min(BOX[0] + 0.12, (WIDTH - RANKS_LEFT - MARGIN) / ranks)
    width = pitch - 0.08
    each = ranks if ranks < 4 else (ranks + 1) // 2  # squares in a line
    wide = min(SLOT[0], (width - 0.06) / each)
    boxes, squares = [], []  # drawn as two collections, because a figure with an element for each of them takes a second
    for rank in range(ranks):
        write(paper, RANKS_LEFT + pitch * (rank + 0.5), top - 0.08, f"rank {rank}", size=8, color=MUTED, ha="center")
        write(paper, MARGIN, top + ROW * rank + BOX[1] / 2 + 0.04, f"chunk {rank}", size=8, color=MUTED)
        for chunk in range(ranks):
            x, y = RANKS_LEFT + pitch * rank + 0.04, top + ROW * chunk
            mark, value = state["marks"][rank][chunk], state["values"][rank][chunk]
            boxes.append((_corners(x, y, width, BOX[1]), "white", MARK_COLOURS[mark], 1.4 if mark else 0.8))
            for part, count in enumerate(state["parts"][rank][chunk]):
                left, above = x + width / 2 + (part % each - each / 2) * wide, y + 0.03 + SLOT[1] * (part // each)
                line = (INK, 1.6) if count > 1 else (RULE, 0.5)
                squares.append((_corners(left, above, wide, SLOT[1]), RANK_COLOURS[part] if count else "white", *line))
                if count:
                    write(
                        paper, left + wide / 2, above + SLOT[1] / 2, f"{part}", size=6.5, color="black", ha="center", va="center_baseline"
                    )
            word = f"{number(value)} {mark}".strip()
            write(paper, x + width / 2, y + BOX[1] - 0.05, word, size=7.5, weight="bold", ha="center")
    for shapes in (boxes, squares):
        corners, faces, edges, widths = zip(*shapes, strict=True)
        paper.add_collection(PolyCollection(corners, facecolors=faces, edgecolors=edges, linewidths=widths), autolim=False)


def _corners(x: float, y: float, width: float, height: float) -> list[tuple[float, float]]:
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]


# ---- meshes ----

DEVICE, BETWEEN, BELOW = (0.8, 0.4), 0.75, 0.75  # inches: a box, from a box to the next stage, from a row to the next row


def mesh_grid(data: Mapping[str, Any], stages: int, replicas: int, rank: int) -> Picture:
    """Return a figure of a mesh: a box for each rank, a row for each replica, and the messages of one rank as arrows.

    Parameters
    ----------
    data : mapping
        The data of :class:`MeshView`.
    stages, replicas, rank : int
        The mesh, and the rank whose messages are drawn.
    """
    mesh = data["meshes"][f"{stages}/{replicas}"]
    own = [link for link in mesh["links"] if rank in link[1:3]]
    letters = {kind["name"]: kind["words"] for kind in data["kinds"]}
    stage, replica = mesh["places"][rank]
    words = [f"{letters[kind]} from rank {sender} to rank {receiver}" for kind, sender, receiver, _ in own]
    head = f"Rank {rank} is stage {stage} of replica {replica}"
    legend = ", ".join(f"{KIND_STYLES[kind][2]}: {words}" for kind, words in letters.items())
    step = min(DEVICE[0] + BETWEEN, (WIDTH - 1.0 - MARGIN) / stages)
    wide = min(DEVICE[0], 0.62 * step)
    top = 0.62
    figure = Picture(
        top + BELOW * replicas + 0.3,
        f"Mesh of {counted(stages, 'stage')} and {counted(replicas, 'replica')}. {head}. {'; '.join(words) or 'It sends no messages'}.",
    )
    paper = page(figure)
    write(paper, MARGIN, MARGIN + 0.14, head, size=10.5, weight="bold")
    corners = [(1.0 + step * at[0], top + BELOW * at[1]) for at in mesh["places"]]
    for column in range(stages):
        style = {"weight": "bold"} if column == stage else {"color": MUTED}
        write(paper, 1.0 + step * column + wide / 2, top - 0.14, f"stage {column}", size=8, ha="center", **style)
    for row in range(replicas):
        style = {"weight": "bold"} if row == replica else {"color": MUTED}
        write(paper, MARGIN, top + BELOW * row + 0.24, f"replica {row}", size=8, **style)
    for each, (x, y) in enumerate(corners):
        face, ink = (CHOSEN, "white") if each == rank else ("white", INK)
        near = each in mesh["pipelines"][replica] or each in mesh["groups"][stage]
        frame = FancyBboxPatch((x, y), wide, DEVICE[1], boxstyle="round,pad=0,rounding_size=0.05", facecolor=face)
        frame.set(edgecolor=INK if near else MUTED, linewidth=1.3 if near else 0.7)
        paper.add_patch(frame)
        write(paper, x + wide / 2, y + DEVICE[1] / 2, f"{each}", color=ink, ha="center", va="center_baseline")
    for kind, sender, receiver, _ in own:
        _draw_link(paper, kind, corners[sender], corners[receiver], wide)
    write(paper, MARGIN, top + BELOW * replicas + 0.12, legend, size=8, color=MUTED)
    return figure


def _draw_link(paper: Axes, kind: str, start: tuple[float, float], end: tuple[float, float], wide: float) -> None:
    """Draw a message between two boxes with its letter. A ring message that goes back to the first row bends around the boxes between."""
    colour, dash, letter = KIND_STYLES[kind]
    style: dict[str, Any] = {"color": colour, "linestyle": dash, "linewidth": 1.6, "mutation_scale": 9, "shrinkA": 0, "shrinkB": 0}
    (x0, y0), (x1, y1) = start, end
    if kind != "ring":
        forward = x1 > x0
        y = y0 + (0.14 if forward else 0.27)
        ends = (x0 + wide + 0.03, x1 - 0.03) if forward else (x0 - 0.03, x1 + wide + 0.03)
        paper.add_patch(FancyArrowPatch((ends[0], y), (ends[1], y), arrowstyle="-|>", **style))
        write(paper, sum(ends) / 2, y - 0.04 if forward else y + 0.15, letter, size=8, weight="bold", ha="center")
        return
    if y1 > y0:
        middle = x0 + wide / 2
        paper.add_patch(FancyArrowPatch((middle, y0 + DEVICE[1] + 0.02), (middle, y1 - 0.02), arrowstyle="-|>", **style))
        write(paper, middle + 0.08, (y0 + DEVICE[1] + y1) / 2 + 0.04, letter, size=8, weight="bold")
        return
    right = x0 + wide + 0.02
    bend: dict[str, Any] = {"connectionstyle": "arc3,rad=0.25", "arrowstyle": "-|>"}
    paper.add_patch(FancyArrowPatch((right, y0 + 0.08), (right, y1 + DEVICE[1] - 0.08), **bend, **style))
    write(paper, right + 0.12, (y0 + y1 + DEVICE[1]) / 2 + 0.04, letter, size=8, weight="bold")
