"""Grading of a class on a Dask cluster.

The coordinator, which is the `autograder grade` command, makes the tasks, validates the workers' reports and is the
only process that writes the gradebook. Dask's workers import only `worker`. Others import `cluster_run`.
"""
