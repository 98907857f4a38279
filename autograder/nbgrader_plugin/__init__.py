"""What a course's `nbgrader_config.py` tells nbgrader to use. Imports neither torch nor pytest."""
