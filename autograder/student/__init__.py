"""The student's code as hidden tests call it: proxies of functions and classes, wherever the code runs.

A proxy turns each call into an operation and passes it to a backend: a worker in the sandbox, or a bench in this
process. Answers from a worker are decoded and checked before they are used, and what they may cost is limited.
"""
