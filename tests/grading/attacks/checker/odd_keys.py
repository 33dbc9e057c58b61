"""Hand in for tasks that do not exist."""

# %% below
for key in ("", "lab02", "lab99.t1", "../../x", "=1+1", "__class__", None, 7, others, object(), "lab02.t1" * 10**5):
    check(key, 1)
    check(key=key, answer=1, seed=3, student="ana")
