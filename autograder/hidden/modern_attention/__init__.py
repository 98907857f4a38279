"""Unit 9: the hidden tests of attention in models of today."""
