"""Lab 2, GPipe and 1F1B: its tasks and builds."""
