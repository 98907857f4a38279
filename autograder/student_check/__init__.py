"""The student check and the other functions that notebooks import.

The modules are released in a zip, with those of `core` and `tracing` that they use.
"""
