"""Let the interpreter recurse until its stack breaks."""

# %% below
import sys

sys.setrecursionlimit(10**9)


def deeper(*given):
    return [*map(deeper, (given,))]


claim(1, deeper)
deeper()
