"""Never come to an end."""

# %% below
claim(1)
while True:
    pass
