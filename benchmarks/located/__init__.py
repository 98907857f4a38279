"""Accuracy of the fault location, measured on automatic edits of right code."""
