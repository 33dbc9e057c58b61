"""Break the interpreter."""

# %% below
import ctypes

claim(1)
ctypes.string_at(0)
