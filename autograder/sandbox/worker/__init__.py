"""The untrusted side of the sandbox: runs the notebook's cells and executes the operations that tests request.

A copy of this package, `core` and `sandbox.confine` runs in the same process as the student's code. Nothing in them is
secret.
"""
