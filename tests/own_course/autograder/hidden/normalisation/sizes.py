"""The sizes of the cases."""

D = 5
