"""Let the grader unpickle an object that runs a command."""

# %% below
import os
import pickle


class Command:
    def __reduce__(self):
        return (os.system, (f"touch {WATCHED}/pickled",))

    __reduce_ex__ = lambda self, protocol: self.__reduce__()
    __getstate__ = __copy__ = __deepcopy__ = lambda self, *given: os.system(f"touch {WATCHED}/pickled")


claim(Command())
claim(pickle.dumps(Command()))
claim(str(pickle.dumps(Command(), 0)))
claim([Command()] * 3)
