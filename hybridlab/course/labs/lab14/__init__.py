"""Lab 14, latency: its tasks, and the cases and known mistakes of its coding tasks."""
