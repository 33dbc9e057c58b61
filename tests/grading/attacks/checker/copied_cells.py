"""Copy the solved cell over each other one, with the task of that one."""

# %% instead
(solved,) = (cell for cell in cells if cell.task not in others)
cells = [solved, *(CodeCell(solved.source, key) for key in others)]
