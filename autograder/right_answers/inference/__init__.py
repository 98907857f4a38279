"""Unit 6: right answers to attention one token at a time, as different students write them."""
