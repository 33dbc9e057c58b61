"""Lab 2, GPipe and 1F1B: its tasks, and the data of its coding tasks ("builds")."""
