"""Be another function whenever somebody looks: its name, its signature and its code change."""

# %% below
import types


class Changing:
    looks = 0

    @property
    def __name__(self):
        Changing.looks += 1
        return ("solution", "MARKER\x1b[2J\u202e\n" * 9, "build")[Changing.looks % 3]

    @property
    def __signature__(self):
        raise SystemExit

    @property
    def __wrapped__(self):
        return self

    def __call__(self, *given):
        return given


def renamed(*given):
    renamed.__name__ = "MARKER" + chr(len(given))
    renamed.__code__ = (lambda *given: given).__code__
    return list(given)


claim(1, Changing())
claim(1, renamed)
claim(1, types.MethodType(renamed, others))
