"""What the released files are called, and what stands in them beside the exercises."""

EXAMPLES, MISTAKES = "public_examples.json", "known_mistakes.json"
WRITTEN = "written questions"
"""Among the exercises: the points of the questions that a person marks."""
