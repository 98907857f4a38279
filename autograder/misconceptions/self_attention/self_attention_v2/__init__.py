"""What goes wrong in `SelfAttention_v2`."""
