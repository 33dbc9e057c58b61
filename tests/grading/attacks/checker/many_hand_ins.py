"""Hand in all whole numbers, one after the other."""

# %% below
for number in range(3000):
    claim(number)
