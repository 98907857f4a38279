"""Right answers in other styles than the solutions': see `autograder.catalogue`."""
