"""Return iterators that work for each value, and answer again whenever they are asked for their length."""


# %% below
class Slow:
    def __iter__(self):
        return self

    def __next__(self):
        return sum(range(100_000))

    def __length_hint__(self):
        return 2**62


claim(Slow(), lambda *given: Slow())
