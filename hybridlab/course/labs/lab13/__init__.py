"""Lab 13, zero bubble: its tasks, and the cases and known mistakes of its coding task."""
