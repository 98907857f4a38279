"""Unit 6: the hidden graders of attention that goes on one token at a time."""
