"""Fault location and repair: where a wrong answer goes wrong, and the edit with which all tests pass.

`locating` compares one run of the answer with right runs and names step and line. `repair_operators` lists candidate
edits of the answer's code. Both run in the worker and in the student check.
"""
