"""Builds a course's files: exercises/ and solutions/ -> source/ -> release/, the same bytes each time.

`course_files` builds all of them, `source_notebook` one unit's notebook, and `release_files` what students get with it.
`exercise_files` begins or removes an exercise. Only a class knows its due date, so `nbgrader_plugin.exchange` writes it
into the README when a unit is released to the class.

Others import `course_files`, `exercise_files` and `source_notebook`.
"""
