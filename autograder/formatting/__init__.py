"""HTML of students' texts for feedback pages, made in a confined process within a budget of time for each page.

`rendering` makes the HTML, `formatter` is the confined process, and `client` its trusted side with the budget. Others
import `client` and `rendering`.
"""
