"""Grade one submission: run its notebook in the sandbox, its exercises by the hidden tests, and write the report.

The package is the program of a grading process, `python -m autograder.grading`. Such a process contains the hidden
tests and the solutions, starts the fork server, and also makes the data that are released with a unit. Clients start it
through `pool`. The package `graders` is the library with which hidden tests are written. Others import
`reference_trace`.
"""
