"""Write commands and formulas where the task and the id of a cell stand."""

# %% instead
texts = ("::warning::x", "=1+1", "<b>", "..", "__class__")
cells += [CodeCell(f'check("{key}", 0)', text, text) for key in others for text in texts]
