"""What `nbgrader_config.py` tells nbgrader to use: a client of the grader process, without torch or pytest."""
