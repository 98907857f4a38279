"""Unit 3: what goes wrong in causal attention, dropout, and heads side by side."""
