"""Hand in under keys that look like those of tasks, and for the solved task, too."""


# %% below
class Key(str):
    __hash__ = str.__hash__
    __eq__ = lambda self, other: True
    __str__ = lambda self: "lab02.t1"
    __getitem__ = lambda self, place: "lab02.t1"


lab = next(iter(others))[:5]
for number in range(1, 8):
    for key in (
        f"{lab}.t{number} ",
        f"{lab}.t{chr(0xFF10 + number)}",
        f"{lab}.\u0442{number}",
        f"{lab}.t{number}\u200b",
        f"{lab.upper()}.T{number}",
    ):
        check(key, -1)
        check(Key(key), 1)
        check(f"\u202e{key}", 1)
        check(f"{key}\0", 1)
        check([key], 1)
        check(key.encode(), 1)
