"""Lab 9, the A100 report: its tasks and its coding tasks ('builds')."""
