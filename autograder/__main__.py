"""`python -m autograder`."""

from .cli import main

main()
