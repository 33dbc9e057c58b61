"""Hand in all numbers in one answer."""

# %% below
claim(list(range(900)))
claim(set(range(900)))
claim({number: number for number in range(900)})
claim(range(10**6))
