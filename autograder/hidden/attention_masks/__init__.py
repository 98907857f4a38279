"""Unit 5: the hidden graders of masks, of what tells places apart, and of attention to another sentence."""
