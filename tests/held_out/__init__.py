"""Answers that two writers wrote from the exercises' texts alone, each with a sentence on what is wrong with it."""
