"""Unit 9: alternative solutions of attention in models of today."""
