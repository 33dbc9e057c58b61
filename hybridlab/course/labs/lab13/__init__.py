"""Lab 13, zero bubble: its tasks, and the subject of its coding task."""
