"""Lab 3, bubbles and memory: its tasks and builds."""
