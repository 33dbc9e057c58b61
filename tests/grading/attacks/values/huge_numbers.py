"""Hand in whole numbers with thousands of digits."""

# %% below
for value in (10**5000, -(10**1200), 10**1200, [10**1200] * 8, {"0F0": (10**1200, 10**1200)}, (10**1200, [10**1200])):
    claim(value)
