"""Take 3 GB at once."""

# %% below
claim(1)
x = bytearray(3 * 2**30)
x[::4096] = b"1" * len(x[::4096])
