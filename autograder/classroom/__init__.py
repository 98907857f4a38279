"""A whole class: its submissions, grading them in parallel, and one writer for the gradebook and students' folders.

It also makes and upgrades the folder of a class (`class_folder`). Others import all its modules.
"""
