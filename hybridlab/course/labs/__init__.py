"""The labs, with a folder for each: its tasks, the cases and the judges of its builds, their known mistakes and their twists."""
