"""Lab 10, scaling: its tasks and its coding tasks ('builds')."""
