"""Lab 15, imbalance: its tasks and builds."""
