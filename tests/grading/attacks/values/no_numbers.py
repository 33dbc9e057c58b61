"""Hand in NaN and infinity."""

# %% below
for value in (float("nan"), float("inf"), -float("inf"), [float("nan")] * 8, {"A": float("inf")}, (float("nan"),) * 3):
    claim(value)
