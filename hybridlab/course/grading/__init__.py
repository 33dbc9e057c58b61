"""Grading: student copies of labs, a worker in a sandbox that runs them, marks, reports, and the command ``hybridlab``."""
