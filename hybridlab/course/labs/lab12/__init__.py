"""Lab 12, chunks and waves: its tasks and its coding tasks ('builds')."""
