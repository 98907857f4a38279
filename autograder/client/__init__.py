"""Asking for marks: a marking process as its client sees it. Imports neither torch nor pytest."""
