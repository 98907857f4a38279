"""Marks what is handed in as soon as it is there."""
