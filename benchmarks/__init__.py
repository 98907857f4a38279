"""Benchmarks, with alternatives measured in one run. They are not tests: the figures depend on the machine."""
