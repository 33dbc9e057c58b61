"""Lab 16, real processes: its tasks and builds."""
