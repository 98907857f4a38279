"""The parts of hidden tests: the student's code as tests call it, contracts, cases and statements, and collection.

A proxy turns each call of a student's function into an operation for a backend: a worker in the sandbox, or a bench in
this process. Answers from a worker are decoded and checked before they are used, and what they may cost is limited.
Others import any of its modules.
"""
