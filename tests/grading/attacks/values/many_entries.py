"""Hand in a dict with a million entries."""

# %% below
claim({number: number for number in range(1_000_000)})
