"""Builds a course's files: exercises/ and solutions/ -> source/ -> release/, the same bytes each time.

`course_files` builds all files, `source_notebook` one unit's notebook, and `release_files` the files that students get
with it. `new_exercise` writes templates for a new exercise. Others import `check_import`, `course_files`,
`new_exercise` and `source_notebook`.
"""
