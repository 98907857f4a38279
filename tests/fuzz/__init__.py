"""Fuzz the trusted side with untrusted bytes: `python -m tests.fuzz SECONDS` searches for inputs that break it.

The inputs are a worker's frames, its answers to the hidden tests, notebooks, submitted folders, rosters and settings.
Each of them may raise the documented exceptions and no others, in bounded memory and time.
"""
