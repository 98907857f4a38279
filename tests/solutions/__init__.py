"""The solutions, by which all else is measured, held against the formulas and against PyTorch's own attention."""
