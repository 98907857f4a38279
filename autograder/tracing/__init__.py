"""Fault location: find the step and the line where an answer goes wrong, from one run of it beside right runs."""
