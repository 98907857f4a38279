"""Operations, their executor and what it observes: shared by the worker, the grading process and the student check.

Imports only torch and the standard library.
"""
