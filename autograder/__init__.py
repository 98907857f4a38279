"""Marks exercises: students' code in one process, hidden graders in another."""

__version__ = "0.1.0"
