"""What all labs share: tasks, checks of answers, variants of the tasks for each student, and pictures of answers."""
