"""The parts of hidden tests: the student's code as tests call it, contracts, cases and statements, and collection.

A proxy turns each call of a student's function into an operation for a backend: a worker in the sandbox, or a bench in
this process. A worker's answers are decoded and checked before they are used, within limits of time and memory. Others
import any of its modules.
"""
