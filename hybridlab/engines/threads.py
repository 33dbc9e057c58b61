"""The engine "threads": one thread for each device, with queues of messages between the threads."""

import threading
from collections.abc import Callable
from itertools import chain

from hybridlab.engines.device import Device
from hybridlab.engines.job import Job, Measured, no_times, report_steps
from hybridlab.engines.queues import Queues
from hybridlab.errors import HybridLabError

MOST_THREADS = 256


def run_in_threads(job: Job, report: Callable[[int], None]) -> Measured:
    """Return the measurements of a job, run with a thread for each rank. All threads have ended afterwards, even after an error."""
    if job.ranks > MOST_THREADS:
        raise HybridLabError(f"{job.ranks:,} devices are more than {MOST_THREADS} threads: take fewer devices or replicas", "too-large")
    times, queues = no_times(job), Queues(job)
    devices = [Device(rank, job, queues, times) for rank in range(job.ranks)]
    look = report_steps(job, times, report)
    _run_devices(devices, queues, look)
    look()  # the last step can have ended after the last look
    spans = [list(chain.from_iterable(of_ranks)) for of_ranks in zip(*(each.spans for each in devices), strict=True)]
    return Measured(times, spans, tuple(each.result for each in devices), "")


def _run_devices(devices: list[Device], queues: Queues, look: Callable[[], None]) -> None:
    """Run the threads of all devices until they end. Then raise the first error of a device, if any."""
    threads = [threading.Thread(target=each.run, name=f"device {each.rank}", daemon=True) for each in devices]
    try:
        for thread in threads:
            _start_thread(thread)
        queues.wait_for_all(look)
    except BaseException as why:  # after an interrupt, or if a thread cannot be started, stop the other threads
        queues.stop(why)
        for thread in threads:
            if thread.ident is None:  # never started
                queues.leave()
        queues.wait_for_all()
        raise
    finally:
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    if queues.fault is not None:
        raise queues.fault


def _start_thread(thread: threading.Thread) -> None:
    """Start a thread, or raise an error with advice if the system refuses to start the thread."""
    try:
        thread.start()
    except RuntimeError as why:
        failed = f"the thread of {thread.name} cannot be started ({why})"
        advice = "take fewer devices or replicas; a notebook that runs in a browser has no threads at all"
        raise HybridLabError(f"{failed}: {advice}", "no-threads") from why
