"""A library for hidden tests: proxies of the student's code, contracts, cases, statements, and collection of the tests.

Hidden tests are written with this package; the package `grading` runs them on a submission.

A proxy turns each call of a student's function into an operation for a backend: a worker in the sandbox, or a bench in
this process. A worker's answers are decoded and checked before they are used, within limits of time and memory. Others
import any of its modules.
"""
