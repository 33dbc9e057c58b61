"""Lab 1, devices, ranks and messages: its tasks, and the data of its coding tasks ("builds")."""
