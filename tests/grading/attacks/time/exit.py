"""End the process at once."""

# %% below
import os

claim(1)
os._exit(0)
