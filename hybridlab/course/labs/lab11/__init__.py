"""Lab 11, recomputation and microbatches: its tasks and its coding tasks ('builds')."""
