"""A unit's slides for the teacher: text, guesses, and what the cells draw with the answers in. Marks nothing."""
