"""Grading on arrival: `autograder serve` grades each submission and releases its page as soon as it comes."""
