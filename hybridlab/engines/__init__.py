"""Schedules that really run: ``run_threads`` has a thread for each device and queues between them, and measures every operation.

``RealStep`` has the arithmetic of one training step for those threads. ``longest_pause`` measures whether a call lets other threads
run at the same time.
"""

from hybridlab.engines.real_step import RealStep
from hybridlab.engines.threads import longest_pause, run_threads

__all__ = ["RealStep", "longest_pause", "run_threads"]
