"""Unit 9: the hidden tests of attention since 2019."""
