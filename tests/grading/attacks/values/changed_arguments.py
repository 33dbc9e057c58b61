"""Change the arguments so that they fit the result."""


# %% below
def emptied(*given):
    for each in given:
        try:
            each.clear()
        except Exception:
            try:
                each[...] = 0
            except Exception:
                pass
    return {} if len(given) == 4 else given[0]


claim(1, emptied)
