"""Lab 10, scaling: its tasks and builds."""
