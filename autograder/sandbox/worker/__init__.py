"""The untrusted side of the sandbox: runs the notebook and carries out the grading process's operations.

A copy of this package, `core` and `sandbox.confine` runs next to the student's code. Nothing in them is secret.
"""
