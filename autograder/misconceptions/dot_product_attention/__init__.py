"""Unit 1: what goes wrong in attention without weights."""
