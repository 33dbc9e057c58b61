"""Schedules that really run: ``run_threads`` runs a thread for each device, with queues between them, and measures all operations.

``RealStep`` has the arithmetic of one training step for these threads. ``longest_pause`` measures whether a function call lets other
threads run at the same time.
"""

from hybridlab.engines.real_step import RealStep
from hybridlab.engines.threads import longest_pause, run_threads

__all__ = ["RealStep", "longest_pause", "run_threads"]
