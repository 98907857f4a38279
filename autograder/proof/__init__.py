"""The proof of the graders on all that the kit knows."""
