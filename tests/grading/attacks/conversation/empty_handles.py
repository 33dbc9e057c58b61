"""Reply with references that have no number, an odd number, or the number of nothing."""

# %% below
import gc

worker = next(each for each in gc.get_objects() if type(each).__name__ == "Worker")
inside = type(worker).do_run.__globals__
for content in ([], [[]], [{}, 1], [None, None], ["x", True], [0, True], [10**9, True], {}, 3):
    worker._encode_other = lambda value, content=content: {"handle": content}
    claim(print, lambda *given: print)
