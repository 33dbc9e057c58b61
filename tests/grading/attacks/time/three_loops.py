"""Write three cells that never end, so that worker after worker is started."""

# %% instead
cells += [CodeCell(f"while {number}: pass") for number in ("True", "1", "2")]
