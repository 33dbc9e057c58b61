"""Let the feedback quote a long text: the name of an operation that does not exist, with the arguments of the case in it."""


# %% below
def told(*given):
    return {"x" * 60 + "MARKER" + repr(given): (0, 1)}


claim({"x" * 60 + "MARKER": 1}, told)
claim("x" * 60 + "MARKER", told)
