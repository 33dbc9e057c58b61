"""Lab 15, imbalance: its tasks, and the cases and known mistakes of its coding task."""
