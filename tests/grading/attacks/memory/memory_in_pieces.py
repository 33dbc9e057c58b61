"""Take memory until there is none, and go on."""

# %% below
kept = []


def taking(*given):
    while True:
        try:
            kept.append(bytearray(2**22))
        except MemoryError:
            return kept


claim(1, lambda *given: len(taking()))
