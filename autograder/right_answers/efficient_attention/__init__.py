"""Unit 7: right answers to attention in less memory, as different students write them."""
