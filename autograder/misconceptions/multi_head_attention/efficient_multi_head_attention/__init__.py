"""What goes wrong in `EfficientMultiHeadAttention`."""
