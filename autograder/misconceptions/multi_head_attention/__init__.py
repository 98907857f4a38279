"""Unit 4: what goes wrong in attention with several heads."""
