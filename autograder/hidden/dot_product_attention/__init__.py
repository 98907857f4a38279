"""Unit 1: the hidden graders of attention without weights."""
