"""Lab 17, schedules of your own: its tasks, and the cases and known mistakes of its coding task."""
