"""Lab 8, threads: its tasks and its coding tasks ('builds')."""
