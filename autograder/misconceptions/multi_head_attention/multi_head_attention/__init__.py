"""What goes wrong in `MultiHeadAttention`."""
