"""The course that uses the library: tasks and their checks, published programs and claims, comparisons with measurements."""
