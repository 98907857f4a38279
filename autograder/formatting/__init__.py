"""HTML of students' texts for feedback pages, made in a confined process within a budget of time for each page.

`rendering` and `fragments` make the HTML, `formatter` is the confined process, and `client` its trusted side with the
budget. Others import `client`, `fragments` and `rendering`.
"""
