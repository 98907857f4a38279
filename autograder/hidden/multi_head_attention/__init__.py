"""Unit 4: the hidden graders of attention with several heads."""
