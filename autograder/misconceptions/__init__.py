"""Known wrong answers: see `autograder.catalogue`."""
