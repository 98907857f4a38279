"""The marking process: a submission in, its report out. It holds the graders, the solutions and the fork server."""
