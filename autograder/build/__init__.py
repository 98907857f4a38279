"""Builds a course's files: exercises/ and solutions/ -> source/ -> release/, the same bytes each time.

`course_files` builds all of them, `source_notebook` one unit's notebook, and `release_files` what students get with it.
`new_exercise` begins an exercise, `remove_exercise` removes one. Others import `check_import`, `course_files`,
`new_exercise`, `remove_exercise` and `source_notebook`.
"""
