"""Unit 2: the hidden graders of self-attention with trainable weights."""
