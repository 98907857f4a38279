"""Candidate edits of a student's own code: a wrong answer is explained by the edit with which all its tests pass."""
