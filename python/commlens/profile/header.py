# SPDX-License-Identifier: Apache-2.0
"""Checks the first bytes of a file: whether it is a complete profile that this reader supports."""

from __future__ import annotations

import struct

from commlens.base.errors import CommlensError
from commlens.profile._schema import APPLICATION_ID, VERSION
from commlens.profile.regular import ProfileFile

OLDEST_VERSION = 2

MAGIC = b"SQLite format 3\0"
HEADER_SIZE = 100  # https://www.sqlite.org/fileformat.html, section 1.3


def check_header(file: ProfileFile) -> None:
    """Refuse a file that cannot be a profile that this reader supports.

    Reads the first bytes only. SQLite itself treats an empty file as an empty database, and detects a missing end only
    when a query reads it.

    Raises
    ------
    CommlensError
        The file is unreadable, not a profile, truncated, too new or too old.
    """
    path = file.path
    try:
        header = file.read(HEADER_SIZE)
    except OSError as error:
        raise CommlensError(f"{path}: cannot be read: {error.strerror}") from None
    if not header:
        raise CommlensError(f"{path}: not a profile: the file is empty")
    if not header.startswith(MAGIC) and not MAGIC.startswith(header):
        raise CommlensError(f"{path}: not a profile: not an SQLite file")
    if len(header) < HEADER_SIZE:
        raise CommlensError(f"{path}: truncated to {file.size} bytes")
    (application_id,) = struct.unpack_from(">i", header, 68)
    if application_id != APPLICATION_ID:
        raise CommlensError(f"{path}: not a profile: an SQLite file of another program")
    (version,) = struct.unpack_from(">i", header, 60)
    if version > VERSION:
        raise CommlensError(
            f"{path}: has schema version {version}, but this commlens reads at most {VERSION}: use a newer commlens"
        )
    if version < OLDEST_VERSION:
        raise CommlensError(
            f"{path}: has schema version {version}, but this commlens reads {OLDEST_VERSION} and later: use an older commlens"
        )
    page_size, pages = struct.unpack_from(">H", header, 16)[0], struct.unpack_from(">I", header, 28)[0]
    page_size = 65536 if page_size == 1 else page_size
    if file.size < page_size * pages:
        raise CommlensError(f"{path}: truncated to {file.size} of {page_size * pages} bytes")
