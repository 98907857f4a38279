"""Grading processes as their clients use them: how they are started, asked, replaced when they end, and closed.

Imports neither torch nor pytest, because formgrader runs this in the Jupyter server. Others import any of its modules.
"""
