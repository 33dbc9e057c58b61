"""Ask for the signal at a limit of computing time, and go on in its handler."""

# %% below
import resource
import signal


def handler(*given):
    while True:
        pass


for number in (signal.SIGXCPU, signal.SIGVTALRM, signal.SIGPROF):
    signal.signal(number, handler)
_, most = resource.getrlimit(resource.RLIMIT_CPU)
resource.setrlimit(resource.RLIMIT_CPU, (1, most))
signal.setitimer(signal.ITIMER_VIRTUAL, 0.2, 0.2)
claim(1)
