"""Unit 5: right answers to masks, order and attention to another sentence, as different students write them."""
