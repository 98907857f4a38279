"""A report as a student reads it: in the notebook's cells, and so on nbgrader's feedback page."""
