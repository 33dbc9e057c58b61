"""Let the grader keep results of its functions that only the worker could release."""

# %% below
import numpy as np

kept, rounds = [], iter(range(400))


def keeping(*given):
    for _ in rounds:
        for each in filter(callable, given):
            try:
                kept.append(each(0, 0, np.ones((10_000, 3), np.int8)))
            except Exception:
                pass
    return kept


claim(1, keeping)
