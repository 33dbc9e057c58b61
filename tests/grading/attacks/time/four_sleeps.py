"""Sleep in each of four cells, which takes no computing time."""

# %% instead
cells += [CodeCell(f"import time\ntime.sleep(2.9)  # {number}") for number in range(4)]
