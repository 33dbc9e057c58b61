"""Lab 16, real processes: its tasks, and the cases and known mistakes of its coding task."""
