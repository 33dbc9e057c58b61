"""Lab 5, wire formats: its tasks and builds."""
