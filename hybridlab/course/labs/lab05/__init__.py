"""Lab 5, wire formats: its tasks, and the data of its coding tasks ("builds")."""
