"""What goes wrong in `OptimizedMultiHeadAttention`."""
