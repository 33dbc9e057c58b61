"""Lab 1, devices, ranks and messages: its tasks and builds."""
