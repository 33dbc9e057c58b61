"""Hand in texts on which the patterns of a judge take long."""

# %% below
for text in (" " * 20_000 + "x", "device " * 2_800, "1F" * 10_000, "(" * 9_000 + ")" * 9_000):
    claim(text)
for text in ("9**" * 6_000 + "9", "-" * 19_000 + "1", "10**9999 * 10**9999"):
    claim(text)
claim("1" * 20_000, lambda *given: ["1" * 20_000] * 45)
