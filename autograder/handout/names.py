"""What the released files are called, and what stands in them beside the exercises."""

EXAMPLES, MISTAKES, STEPS = "public_examples.json.gz", "known_mistakes.json.gz", "right_steps.json.gz"
LESSON = "guesses_and_hints.json.gz"
"""Only where a unit has guesses or hints."""
WRITTEN = "written questions"
"""Among the exercises: the points of the questions that a person marks."""
