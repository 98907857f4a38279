"""Unit 8: the hidden graders of a language model, all of it together."""
