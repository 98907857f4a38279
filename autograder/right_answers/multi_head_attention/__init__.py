"""Unit 4: right answers to attention with several heads, as different students write them."""
