"""Sleep in each of four cells, longer than 2 s of computing time and 8 s in all, which takes no computing time."""

# %% instead
cells += [CodeCell(f"import time\ntime.sleep(2.1)  # {number}") for number in range(4)]
