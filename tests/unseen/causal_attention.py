"""Causal attention, beyond the catalogue."""
