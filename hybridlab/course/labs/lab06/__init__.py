"""Lab 6, the hybrid step: its tasks, and the data of its coding tasks ("builds")."""
