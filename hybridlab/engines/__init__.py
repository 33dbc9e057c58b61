"""A schedule run for real: ``run_threads`` has a thread for each device and queues between them, and measures every operation.

``RealStep`` is the arithmetic of one training step for those threads. ``longest_pause`` shows which calls let other threads
run beside them.
"""

from hybridlab.engines.interpreter import longest_pause
from hybridlab.engines.real_step import RealStep
from hybridlab.engines.threads import run_threads

__all__ = ["RealStep", "longest_pause", "run_threads"]
