"""The course on top of the library: tasks and their checks, published programs and claims, comparisons with measurements."""
