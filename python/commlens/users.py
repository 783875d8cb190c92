# SPDX-License-Identifier: Apache-2.0
"""Root looks at what other users left with their rights, never with its own."""

from __future__ import annotations

import os
import pwd

from commlens.errors import CommlensError

NOBODY = 65534


def name_of(uid: int) -> str:
    """Return the name of a user, or the number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _facts(user: str) -> tuple[int, int, str]:
    """Return user id, group id and name; a number needs no entry in the list of users: containers have such."""
    try:
        entry = pwd.getpwuid(int(user)) if user.isdecimal() else pwd.getpwnam(user)
    except (KeyError, OverflowError):
        if user.isdecimal() and 0 < int(user) < 2**32 - 1:
            return int(user), NOBODY, ""
        raise CommlensError(f"--user {user}: there is no such user") from None
    return entry.pw_uid, entry.pw_gid, entry.pw_name


def become(user: str) -> None:
    """Give up all rights but those of a user, for good.

    Parameters
    ----------
    user : str
        Name or number.

    Raises
    ------
    CommlensError
        There is no such user, or this process may not become another one.
    """
    uid, gid, name = _facts(user)
    if uid == os.geteuid() == os.getuid():
        return
    if os.geteuid() != 0:
        raise CommlensError(f"--user {user}: only root can look at what other users left")
    try:
        if name:
            os.initgroups(name, gid)
        else:
            os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        raise CommlensError(f"--user {user}: cannot become this user: {error.strerror}") from None
