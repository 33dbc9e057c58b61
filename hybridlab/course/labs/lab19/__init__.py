"""Lab 19, the shortest orders with split backwards: its tasks."""
