"""Simulation: computes the timeline of a schedule from costs, or from a time for each operation."""

from hybridlab.simulation.ordered import ordered_actions, torch_actions
from hybridlab.simulation.rows import simulate_rows
from hybridlab.simulation.simulation import simulate, simulate_many
from hybridlab.simulation.times import durations, latencies, running_times, times_by_place

__all__ = [
    "durations",
    "latencies",
    "ordered_actions",
    "running_times",
    "simulate",
    "simulate_many",
    "simulate_rows",
    "times_by_place",
    "torch_actions",
]
