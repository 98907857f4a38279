"""Marks exercises: students' code in one process, hidden graders in another."""

__version__ = "0.2.0"
