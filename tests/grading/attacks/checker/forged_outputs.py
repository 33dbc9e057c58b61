"""Print and display what a passed check shows."""

# %% below
for key in others:
    print(key + ": passed")
    display(key + ": passed")

    class Shown:
        passed = True

        def _repr_html_(self):
            return key + ": passed"

        def __repr__(self):
            return key + ": passed"

    display(Shown())
    check(key, Shown())
