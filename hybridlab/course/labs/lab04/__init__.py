"""Lab 4, the ring all-reduce: its tasks and builds."""
