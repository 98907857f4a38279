"""The untrusted side: everything here runs beside the student's code, and may know nothing worth stealing.

Imports stay inside this folder, the standard library and the packages that notebooks use.
"""
