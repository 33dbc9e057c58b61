"""Lab 6, the hybrid step: its tasks and builds."""
