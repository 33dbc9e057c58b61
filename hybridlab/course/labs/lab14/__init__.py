"""Lab 14, latency: its tasks and builds."""
