"""End the process in each of 26 cells, so that worker after worker is started."""

# %% instead
cells += [CodeCell(f"import os\nos._exit({number})") for number in range(26)]
