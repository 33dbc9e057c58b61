"""Compute a number that no signal can interrupt."""

# %% below
claim(1)
x = 9**9**9
