"""Right answers in other styles than the solutions', one module a unit: see `autograder.catalogue`."""
