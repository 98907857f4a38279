"""What goes wrong in `CausalAttention`."""
