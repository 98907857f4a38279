"""The trusted face of a student's code: what a grader calls, wherever the code really runs."""
