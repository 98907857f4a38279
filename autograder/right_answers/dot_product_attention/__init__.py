"""Unit 1: right answers to attention without weights, as different students write them."""
