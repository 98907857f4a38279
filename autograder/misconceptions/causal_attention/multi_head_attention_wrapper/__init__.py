"""What goes wrong in `MultiHeadAttentionWrapper`."""
