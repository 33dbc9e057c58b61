"""Lab 18, the shortest step in a given memory: its tasks, and the cases and known mistakes of its coding task."""
