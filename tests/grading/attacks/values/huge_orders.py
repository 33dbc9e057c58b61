"""Hand in operations with numbers so large that tables for them need all memory."""

# %% below
claim("device 0: 0F0 0F999999999 0B0 0B999999999", lambda *given: ["0F0 0B0 999999999F0 999999999B0"])
claim(["0F0 0B0", "99999999F99999999 99999999B99999999"])
