"""Hand in generators without an end."""

# %% below
import itertools


def endless(*given):
    while True:
        yield 0


claim(itertools.count(), endless)
claim(map(str, itertools.repeat(1)), lambda *given: itertools.repeat("0F0"))
