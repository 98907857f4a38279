"""Attention without weights, beyond the catalogue."""
