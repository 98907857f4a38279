"""Operations, what they observe and how it is judged: shared by the worker, the grading and the student check.

`operations` and `bench` execute, `packing` and `observation` carry the results, and `comparison` and `judgement` judge
them. Imports only torch and the standard library. Others import any of its modules.
"""
