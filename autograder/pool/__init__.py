"""The client side of grading processes: start them, send them requests, replace those that end, and close them.

The package imports neither torch nor pytest, because formgrader imports it into the Jupyter server. Others import any
of its modules.
"""
