"""nbgrader's side of a class: its settings, its gradebook, the notebooks it keeps. Imports neither torch nor pytest."""
