"""Raise and return objects whose texts need all memory, or never end."""


# %% below
class Huge(Exception):
    def __str__(self):
        return "MARKER" * 10**7

    __repr__ = __str__
    msg = property(lambda self: "MARKER" * 10**7)
    missing = name = property(lambda self: Huge())


Huge.__qualname__ = "MARKER" * 10**5


def raising(*given):
    try:
        raise Huge
    except Huge as why:
        deep = why
        for _ in range(3000):
            deep = ExceptionGroup("MARKER" * 100, [deep]) if len(given) > 9 else Huge().with_traceback(deep.__traceback__)
        deep.__cause__ = deep.__context__ = why
        raise deep from why


claim(Huge(), raising)
raise Huge
