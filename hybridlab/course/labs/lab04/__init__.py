"""Lab 4, the ring all-reduce: its tasks, and the data of its coding tasks ("builds")."""
