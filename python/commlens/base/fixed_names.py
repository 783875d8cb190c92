# SPDX-License-Identifier: Apache-2.0
"""Checks whether other users can replace the file behind a name.

SQLite opens files by name only, and waits where the name is a FIFO. A checked name remains valid if only this user and
root can rename in all folders of its path.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path


def is_fixed(path: Path) -> bool:
    """Return whether only this user and root can replace the file at an absolute path without links.

    Checks the folders from the root down: all folders above the checked one are fixed, so nobody can replace it between
    two checks.
    """
    trusted = _trusted()
    folder = Path("/")
    try:
        for part in path.parts[1:]:
            facts = folder.lstat()
            if not stat.S_ISDIR(facts.st_mode) or facts.st_uid not in trusted:
                return False
            if facts.st_uid == os.geteuid() and not facts.st_mode & (stat.S_IXGRP | stat.S_IXOTH):
                return True  # no other user can reach its content
            # In a sticky folder only the owner of a file, or of the folder, renames it.
            is_sticky = facts.st_mode & stat.S_ISVTX and (folder / part).lstat().st_uid in trusted
            if _others_may_write(facts) and not is_sticky:
                return False
            folder /= part
    except OSError:
        return False
    return True


def _trusted() -> set[int]:
    """Return the trusted user ids: this user, root, and the id that root has in a namespace that does not map it."""
    return {0, os.geteuid(), Path("/").stat().st_uid}


def _others_may_write(facts: os.stat_result) -> bool:
    """Return whether users other than the owner may write to a folder.

    Access control lists appear in the group bits.
    """
    if facts.st_mode & stat.S_IWOTH:
        return True
    return bool(facts.st_mode & stat.S_IWGRP) and not _is_group_of_one(facts.st_gid)


def _is_group_of_one(gid: int) -> bool:
    """Return whether a group is this user's private group."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    is_private = user.pw_gid == gid and group.gr_name == user.pw_name
    return is_private and set(group.gr_mem) <= {user.pw_name}
