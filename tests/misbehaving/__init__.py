"""Submissions that misbehave: what each tries, and the mark it must get. None may touch anything, whatever it tries."""
