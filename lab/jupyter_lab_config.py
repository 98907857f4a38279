"""JupyterLab's settings for a course. `make lab` puts this folder before those of the user's home."""

c = get_config()  # noqa: F821  (Jupyter provides it)

c.ServerApp.jpserver_extensions = {
    "nbgrader.server_extensions.formgrader": True,
    "nbgrader.server_extensions.assignment_list": True,
    "nbgrader.server_extensions.validate_assignment": True,
}
c.ServerApp.allow_root = True  # in a container there is often no other user
