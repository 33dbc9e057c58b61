"""Lab 3, bubbles and memory: its tasks, and the data of its coding tasks ("builds")."""
