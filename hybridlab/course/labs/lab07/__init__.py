"""Lab 7, accuracy: its tasks and builds."""
