"""Fault location and repair: where a wrong answer goes wrong, and the edit with which all tests pass.

`fault_search` compares one run of the answer with right runs and locates the faulty line; `explain` writes the message
on it. `repair_operators` lists candidate edits of the answer's code. Others import
`definitions`, `explain`, `fault`, `fault_search`, `reference` and `repair_operators`.
"""
