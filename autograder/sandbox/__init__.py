"""Where a student's code runs: a warm parent that forks one worker a submission, and the wire to it.

`inside/` is all of this kit that the untrusted process ever imports; `server` is its keeper on the trusted side.
"""
