"""Unit 3: the hidden graders of causal attention, dropout, and heads side by side."""
