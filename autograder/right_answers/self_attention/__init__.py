"""Unit 2: right answers to self-attention with trainable weights, as different students write them."""
