"""Lab 7, accuracy: its tasks and its coding tasks ('builds')."""
