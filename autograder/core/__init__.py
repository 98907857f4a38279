"""Operations on a student's code, their observations, and how these are judged: for worker, grading and student check.

`operations` and `bench` execute, `packing` and `observation` carry the results, and `comparison` and `judgement` judge
them. Imports only torch and the standard library. Others import any of its modules.
"""
