"""Reports in the formats of other programs."""
