"""The results of grading as people and programs read them.

`pages` makes a student's feedback page, `class_report` reports on a whole class, `exports` writes reports for other
programs: JSON lines, JUnit and Gradescope. No module changes a score. All pages share the head and
the stylesheet in `templates/base/`; the package `formatting` makes the HTML of students' texts and formulas. Others
import `class_report`, `exports` and `pages`.
"""
