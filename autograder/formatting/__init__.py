"""HTML of students' texts for feedback pages, made in a confined process within a budget of time for each page.

`rendering`, `mathml`, `pictures` and `plain_text` make the HTML, `formatter` is the confined process, `client` its
trusted side, and `page` the budget. Others import `client`, `page`, `pictures` and `rendering`.
"""
