"""Lab 8, threads: its tasks and builds."""
