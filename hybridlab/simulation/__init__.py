"""Simulation: it computes a timeline from a schedule and its costs."""

from hybridlab.simulation.simulation import simulate, simulate_many
from hybridlab.simulation.times import durations, latencies, times_by_place

__all__ = ["durations", "latencies", "simulate", "simulate_many", "times_by_place"]
