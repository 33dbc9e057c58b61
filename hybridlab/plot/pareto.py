"""The plans of a search: time against memory, and the line of those that no other beats in both."""

import textwrap

import numpy as np

from hybridlab.checks import checked_text, counted, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.palette import line_style
from hybridlab.planner import Found, Plan, Search
from hybridlab.plot.picture import INK, MUTED, Picture, text_width, write
from hybridlab.plot.points import HEIGHT, SIZE, WIDE, plane

X_LABEL, Y_LABEL = "memory of the fullest GPU, GB", "seconds of an iteration"
# Where the axis of time ends, so that slow plans do not press the rest together: times the slowest of the line, times the fastest
BEYOND, MOST = 1.5, 5.0


def pareto(search: Search, *, title: str = "") -> Picture:
    """Return a figure of the plans that fit, seconds against memory; a line joins those that no other beats in both.

    The fastest is named. A dashed line is the capacity of the GPU. Plans half as slow again as the slowest of the line, or five
    times as slow as the fastest, are not drawn but counted. Raises :class:`HybridLabError` for what is no :class:`Search`.

    >>> from hybridlab.hardware import A100_80GB
    >>> from hybridlab.model import Transformer
    >>> from hybridlab.planner import search
    >>> pareto(search(Transformer(layers=1, hidden=768, heads=12), 1, A100_80GB, global_batch=1))
    <Figure: seconds of an iteration against memory of the fullest GPU, GB: 3 plans that fit in 80 GB of A100-SXM4-80GB.
     No other beats 1 of them in both. The fastest: 0.00878 s, 1.7 GB, tensor 1, pipeline 1, data 1, microbatch 1.>
    """
    if not isinstance(search, Search):
        raise HybridLabError(f"pareto draws a Search, such as search(model, gpus, A100_80GB) returns, not {short_repr(search)}")
    title, best, front = checked_text(title, "title"), search.best, search.pareto
    seconds = np.array([each.seconds for each in search.found])
    memory = np.array([each.memory for each in search.found]) / 1e9
    capacity = search.profile.memory / 1e9
    up, across = min(BEYOND * front[-1].seconds, MOST * best.seconds), 1.08 * capacity
    drawn = seconds <= up
    slower = int((~drawn).sum())
    y_label = Y_LABEL + (f" ({counted(slower, 'slower plan')} not drawn)" if slower else "")
    figure, axes, inside = plane(_words(search, title, slower), title, X_LABEL, y_label, across, up)
    axes.plot(memory[drawn], seconds[drawn], "o", color=MUTED, markersize=2.5, alpha=0.5, markeredgewidth=0, gid="plans")
    places = np.array([(each.memory / 1e9, each.seconds) for each in reversed(front)])
    colour = line_style(0).colour
    axes.plot(*places.T, "o-", color=colour, drawstyle="steps-post", linewidth=1.6, markersize=5, gid="front")
    axes.axvline(capacity, color=INK, linestyle=(0, (4, 3)), linewidth=1, gid="capacity")
    right = WIDE * capacity / across
    write(inside, right, -0.1, _room(search), color=MUTED, ha="right")
    x, y = best.memory / 1e9 / across * WIDE, HEIGHT * (1 - best.seconds / up)
    for row, words in enumerate((f"fastest: {best.seconds:.3g} s", *textwrap.wrap(plan_words(best.plan), 60))):
        half = text_width(words, SIZE, bold=not row) / 2
        left = max(min(x - half, right - 0.08 - 2 * half), 0.05)
        write(inside, left, y + 0.22 + 0.17 * row, words, size=SIZE, weight="normal" if row else "bold", va="center_baseline")
    return figure


def plan_words(plan: Plan) -> str:
    """Return a plan in a few words.

    >>> plan_words(Plan(tensor=8, pipeline=4, data=16, microbatch=2, global_batch=1024, chunks=2, sequence_parallel=True))
    'tensor 8, pipeline 4, data 16, microbatch 2, 2 chunks, full recomputation, sequence parallel'
    """
    sizes = [f"{name} {getattr(plan, name)}" for name in ("tensor", "pipeline", "data", "microbatch")]
    chunks = [f"{plan.chunks} chunks"] if plan.chunks > 1 else []
    again = [f"{plan.recompute} recomputation"] if plan.recompute != "none" else []
    return ", ".join([*sizes, *chunks, *again, *(["sequence parallel"] if plan.sequence_parallel else [])])


def _words(search: Search, title: str, slower: int) -> str:
    best, last = search.best, search.pareto[-1]
    message = [
        *([f"{title}:"] if title else []),
        f"{Y_LABEL} against {X_LABEL}: {counted(len(search.found), 'plan')} that fit in {_room(search)}.",
        f"No other beats {len(search.pareto)} of them in both.",
        f"The fastest: {_told(best)}.",
        *([f"The smallest: {_told(last)}."] if last != best else []),
        *([f"{counted(slower, 'slower plan')} not drawn."] if slower else []),
    ]
    return " ".join(message)


def _told(found: Found) -> str:
    return f"{found.seconds:.3g} s, {found.memory / 1e9:.1f} GB, {plan_words(found.plan)}"


def _room(search: Search) -> str:
    return f"{search.profile.memory / 1e9:g} GB of {search.profile.name}"
