"""A report as a student reads it: in the notebook's cells, and through them on nbgrader's feedback page."""
