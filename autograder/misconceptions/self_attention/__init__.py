"""Unit 2: what goes wrong in self-attention with trainable weights."""
