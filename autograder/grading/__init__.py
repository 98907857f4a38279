"""Grade one submission: run its notebook in the sandbox, its exercises by the hidden tests, and write the report.

The package is the grading process, `python -m autograder.grading`. It holds the hidden tests, the solutions and the
fork server, and also makes the data that are released with a unit. Other packages start it through `pool`. Others
import `trace_cases`.
"""
