"""Write and loop in a handler of a timer, when another cell runs."""

# %% below
import signal


def handler(*given):
    while True:
        pass


signal.signal(signal.SIGALRM, handler)
claim(1)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.01)
