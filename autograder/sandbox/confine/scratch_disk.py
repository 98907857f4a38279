"""A file system in memory for the scratch folders, as large as the limits allow: the kernel keeps them, then.

It lies in a mount namespace of the warm parent's own, so nobody else sees it, and it is gone with that process. Root
makes one, and so does an ordinary user where the kernel gives out user namespaces; elsewhere `scratch` watches.
"""

import ctypes
import os
import sys
from pathlib import Path

_NEW_NAMESPACE, _NEW_USER = 0x00020000, 0x10000000
_NO_SUID, _NO_DEVICES = 0x2, 0x4
_RECURSIVE, _PRIVATE = 0x4000, 0x40000
_ITS_OWN = 2
"""The top folder and a scratch folder count as files."""


def mount(folder: str, most_bytes: int, most_files: int, *, has_namespace: bool) -> bool:
    """Puts the file system on a folder; False where that cannot be had, and nothing has changed then.

    has_namespace: this process is in a mount namespace of its own already.
    """
    if sys.platform != "linux":
        return False
    try:
        if not has_namespace:
            _enter_namespace()
        options = f"size={most_bytes},nr_inodes={most_files + _ITS_OWN},mode=700"
        _call("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", _NO_SUID | _NO_DEVICES, options.encode())
    except OSError:
        return False
    return True


def _enter_namespace() -> None:
    """Raises OSError, and leaves this process where it was."""
    if os.geteuid() != 0:
        child = os.fork()  # who enters a user namespace and may do nothing there cannot leave it again
        if not child:
            try:
                _enter_user_namespace()
            except BaseException:
                os._exit(1)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            raise PermissionError
        _enter_user_namespace()
        return
    _call("unshare", _NEW_NAMESPACE)
    _keep_mounts_here()


def _enter_user_namespace() -> None:
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _NEW_USER | _NEW_NAMESPACE)
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"{user} {user} 1")
    (own / "gid_map").write_text(f"{group} {group} 1")
    _keep_mounts_here()


def _keep_mounts_here() -> None:
    _call("mount", b"none", b"/", None, _RECURSIVE | _PRIVATE, None)


def _call(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
