"""Unit 3: right answers to causal attention, as different students write them."""
