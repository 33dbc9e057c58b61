"""What all labs share: tasks and their checks, the answers that they read, students with their own variants, pictures of answers."""
