"""JupyterLab's settings for a course. `make lab` gives this folder precedence over those in the user's home."""

c = get_config()  # noqa: F821  (Jupyter provides it)

c.ServerApp.jpserver_extensions = {
    "nbgrader.server_extensions.formgrader": True,
    "nbgrader.server_extensions.assignment_list": True,
    "nbgrader.server_extensions.validate_assignment": True,
}
c.ServerApp.allow_root = True  # a container often has no other user
