"""Known wrong answers, one module a unit: see `autograder.catalogue`."""
