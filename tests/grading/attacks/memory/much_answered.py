"""Hand in 100 MB."""

# %% below
for key in others:
    check(key, lambda *given: "1" * 100_000_000)
for key in list(others)[:1]:
    check(key, "1" * 100_000_000)
