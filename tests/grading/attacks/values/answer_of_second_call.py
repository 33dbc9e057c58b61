"""Behave in another way when called again."""

# %% below
calls = []


def changing(*given):
    calls.append(given)
    if len(calls) % 2:
        return [""] * len(given)
    raise ValueError(len(calls))


claim(1, changing)
