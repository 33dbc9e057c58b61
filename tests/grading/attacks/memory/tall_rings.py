"""Give a function of the grader arrays for which it needs all memory, or very long."""

# %% below
import numpy as np


def asking(*given):
    shapes = ((20_000, 1), (64, 4096), (700_000, 1), (0, 10**6), (10**6, 0), (1, 700_000), (1,) * 32)
    for each in filter(callable, given):
        for values in [
            *(np.zeros(shape, dtype=np.int8) for shape in shapes),
            np.zeros((9, 9), dtype=object),
            np.zeros(9, "f8,i4"),
            2**4000,
        ]:
            try:
                each(values)
            except Exception:
                pass
    return True


claim(1, asking)
