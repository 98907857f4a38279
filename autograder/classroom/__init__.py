"""A whole class: its submissions, grading them in parallel, and one writer for the gradebook and students' folders.

A class consists of the students; the package `course` has the exercises and settings that they work on. This package
also makes and upgrades the folder of a class (`class_folder`). Others import all its modules.
"""
