"""Use nearly all of the 2 s that a cell may use, in each of ten cells."""

# %% instead
nearly = "import time\nbegun = time.process_time()\nwhile time.process_time() < begun + 1.8: pass  # "
cells += [CodeCell(f"{nearly}{number}") for number in range(10)]
