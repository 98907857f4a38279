"""Attention with several heads, beyond the catalogue."""
