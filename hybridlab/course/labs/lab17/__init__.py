"""Lab 17, design your own: its tasks and builds."""
