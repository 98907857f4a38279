"""Unit 7: the hidden graders of attention in less memory."""
