"""Hand in 900 kB for one task, and more than one message can hold for all."""

# %% below
for key in list(others)[:1]:
    check(key, "9" * 900_000)

# %% below
claim("9" * 900_000)

# %% below
claim([[1] * 60_000] * 3)
