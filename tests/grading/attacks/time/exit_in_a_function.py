"""End the process when a function is called."""

# %% below
import os

claim(1, lambda *given: os._exit(0))
