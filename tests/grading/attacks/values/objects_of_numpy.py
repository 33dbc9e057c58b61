"""Hand in arrays of objects, of records, of times and of text, with axes of every kind."""

# %% below
import numpy as np


class Yes:
    __eq__ = __lt__ = __le__ = __array_ufunc__ = lambda self, *given: True
    __float__ = lambda self: 1.0


itself = np.empty(1, dtype=object)
itself[0] = itself
odd = [np.array([Yes()] * 3, dtype=object), itself, np.zeros(3, "f8,i4"), np.zeros(3, "M8[s]"), np.zeros(3, "V8"), np.array(["MARKER"] * 3)]
odd += [np.ma.masked_all(3), np.matrix([[1.0]]), np.zeros((0,) * 32), np.zeros((1,) * 32), np.float16(7), np.longdouble(1), np.array(1j)]
odd += [np.broadcast_to(np.float64(1), (10**9,)), np.lib.stride_tricks.as_strided(np.zeros(1), (10**9,), (0,)), np.bytes_(b"MARKER")]
for each in odd:
    if each.size < 10**6:
        claim(each)
    claim([1], lambda *given, each=each: each)
