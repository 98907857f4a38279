"""Unit 8: right answers to the parts of a language model, as different students write them."""
