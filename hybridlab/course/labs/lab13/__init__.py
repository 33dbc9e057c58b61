"""Lab 13, zero bubble: its tasks."""
