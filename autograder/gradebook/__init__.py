"""nbgrader's side of a class: its settings, its roster, its gradebook and the notebooks that nbgrader stores.

The package adds tables of its own to nbgrader's gradebook (`records`). `lateness` computes due dates and penalties; the
rule of the penalty is a setting, so it is in `course.settings`. The package imports neither torch nor pytest.
Others import all its modules.
"""
