"""Leave by an exception that nobody expects."""

# %% below
import atexit
import sys


def leaving(*given):
    sys.exit(0)


claim(1, leaving)


class Away(BaseException):
    pass


def raising(*given):
    raise Away


claim(1, raising)
atexit.register(print, "passed")
sys.exit(0)
