"""Grading: student copies of labs, a worker in a sandbox that runs them, marks, reports, and the command ``hybridlab``.

A submission goes through these files::

    student    copies (start, pack)  <-- labs (where the notebooks are)
    read       submissions (whose file is it) --> notebook (its cells, read without trust)
    run        launch --> sandbox + syscalls, or landlock + call_gaps --> worker (the student's process) <--> session (the grader's end)
    mark       specs (what a lab asks for) + cases (seeds of hidden cases) --> marking (one notebook) --> marks
    class      grade (a folder) --> records, reports, canvas, all through escaping
    trust      doctor (does the sandbox hold?) <-- probes (what a worker tries); release (are the marks of a lab right?)
    command    cli

Right answers and judges stay on the grader's side. The worker has Python's own library and numpy. The grader trusts what a worker says
no more than what a student says.
"""
