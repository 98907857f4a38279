"""Grading on arrival: `autograder serve` grades each submission and releases its page as soon as it comes.

Others import `serve` and `served_unit`.
"""
