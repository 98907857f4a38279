"""Hidden graders: what they are made of, and how those of a course are collected and run."""
