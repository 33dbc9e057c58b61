"""Forge arrays of a million rows without a number: they need no bytes, but a loop over them takes long."""

# %% below
import gc

worker = next(each for each in gc.get_objects() if type(each).__name__ == "Worker")
inside = type(worker).do_run.__globals__
content = {"array": ["<f8", [10**6, 0], ""]}
inside["encoded"] = lambda value, *given: {"tuple": [content] * 900}
claim(1, lambda *given: 1)
