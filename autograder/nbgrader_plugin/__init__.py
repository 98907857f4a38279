"""What nbgrader is told to use in `nbgrader_config.py`. A client of the grader process: imports neither torch nor pytest."""
