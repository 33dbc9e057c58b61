"""Hand in 100,000 lists within lists, and a list within itself."""

# %% below
deep = []
for _ in range(100_000):
    deep = [deep]
claim(deep)
itself = []
itself.append(itself)
claim(itself)
broad = [1]
for _ in range(8):
    broad = [broad] * 3
claim(broad)
