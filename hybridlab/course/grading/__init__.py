"""Grade notebooks: copies of labs for students, workers in a sandbox, marks, reports, and the command ``hybridlab``.

A worker is a process that runs the cells of one student's notebook. The grader is the process that starts workers and writes marks.
A submission goes through these files::

    student    copies (start, pack)  <-- labs (paths of the notebooks)
    read       submissions (the student of each file) --> notebook (the cells; no file is trusted)
    run        launch --> sandbox or landlock, + syscalls --> worker (in the worker) <--> session (in the grader)
    mark       specs (the tasks of a lab) + cases (seeds of hidden cases) --> marking (one notebook) --> marks
    class      grade (a folder) --> records, reports, canvas; escaping makes every text in them harmless
    trust      doctor (does the sandbox protect the machine?) <-- probes (the attempts of a worker); release (are a lab's marks right?)
    command    cli

Only the grader knows right answers and judges. The worker has Python's own library and numpy. The student's code can change anything in
the worker, so the grader does not trust the worker's messages.
"""
