"""Diagnose a wrong answer: find the one or two misconceptions that behave like it, in all hidden tests or a part.

The package also measures that on the catalogue: the mutation report, the verdicts of the student check, and the golden
record.
"""
