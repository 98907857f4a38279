"""Strangers' bytes against the trusted side: `python -m tests.fuzz SECONDS` looks for what breaks it.

What is tried are a worker's frames, its answers to the graders, notebooks, folders that were handed in, rosters and
settings. Of each the statement is the same: the documented exceptions and no others, in bounded memory and time.
"""
