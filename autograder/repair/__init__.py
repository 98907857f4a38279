"""Candidate edits of a student's own code. The edit with which all tests pass explains a wrong answer."""
