# SPDX-License-Identifier: Apache-2.0
"""Lets root read the data of other users with their rights, never with its own."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import pwd
import signal

from commlens.base.errors import CommlensError
from commlens.base.processor import KNOWN

NOBODY = 65534
PATIENCE_S = 100
"""Time limit in seconds for a program that root runs as another user, because that user may stop it."""
_JOIN_SESSION_KEYRING = 1
_SET_PARENT_DEATH_SIGNAL = 1
_become: list[int] = []


def name_of(uid: int) -> str:
    """Return the name of a user, or the number if there is no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _facts(user: str) -> tuple[int, int, str]:
    """Return user id, group id and name; a number needs no entry in the user database, as in containers."""
    try:
        entry = pwd.getpwuid(int(user)) if user.isdecimal() else pwd.getpwnam(user)
    except (KeyError, OverflowError):
        if user.isdecimal() and 0 < int(user) < 2**32 - 1:
            return int(user), NOBODY, ""
        raise CommlensError(f"--user {user}: no such user") from None
    return entry.pw_uid, entry.pw_gid, entry.pw_name


def become(user: str) -> None:
    """Give up all rights but those of a user, permanently.

    Parameters
    ----------
    user : str
        Name or number.

    Raises
    ------
    CommlensError
        There is no such user, or this process may not change its user.
    """
    uid, gid, name = _facts(user)
    if uid == os.geteuid() == os.getuid():
        return
    if os.geteuid() != 0:
        raise CommlensError(f"--user {user}: only root can read the files of other users")
    try:
        _leave_keyring()
        if name:
            os.initgroups(name, gid)
        else:
            os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        _become.append(uid)
    except OSError as error:
        raise CommlensError(f"--user {user}: cannot become this user: {error.strerror}") from None


def has_become() -> bool:
    """Return whether this process gave up root's rights; its new user may stop and trace it."""
    return bool(_become)


def _leave_keyring() -> None:
    """Join a new, empty session keyring: otherwise the process would keep that of root, which may contain tickets.

    Raises
    ------
    OSError
        It stays.
    """
    known = KNOWN.get(platform.machine())
    if known is None:
        raise OSError(errno.ENOSYS, "cannot leave its session keyring: unknown processor")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(known.keyctl, _JOIN_SESSION_KEYRING, None) != -1:
        return
    # A kernel without keys has no keyring.  If a container forbids the call, none of its processes can read a key.
    if ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM):
        raise OSError(ctypes.get_errno(), "cannot leave its session keyring")


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
