"""Diagnose a wrong answer: find the misconception that behaves exactly like it, or the pair of misconceptions.

The package also measures that on the catalogue: the mutation report, the verdicts of the student check, and the golden
record.
"""
