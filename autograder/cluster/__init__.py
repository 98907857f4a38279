"""Marking a class on a Dask cluster: tasks are made and results checked at home, which alone writes the gradebook.

`on_worker` is what Dask's workers import; they need none of the rest.
"""
