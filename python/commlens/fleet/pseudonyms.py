# SPDX-License-Identifier: Apache-2.0
"""Replaces personal data by tokens, with a key that the centre keeps (HMAC-SHA-256).

Equal values have equal tokens, so that jobs of one user can be counted. Without the key nobody can compute the token of a
name that he guesses.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Sequence
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from commlens.base.errors import CommlensError
from commlens.base.inputs import read_regular
from commlens.fleet._dataset import Table

LEAST_KEY = 16
MOST_KEY = 4096
TOKEN = 16  # hexadecimal digits
IDENTITY = 8  # bytes of a hash; its highest bit is cleared, so that every language has an integer for it


class Pseudonyms:
    """Tokens for personal data. Without a key values stay as they are.

    Parameters
    ----------
    key : bytes or None
    """

    def __init__(self, key: bytes | None = None):
        self._key = key

    def token(self, kind: str, text: str) -> str:
        """Return the token of a value, or the value without a key; an empty value stays empty.

        >>> Pseudonyms(b"0123456789abcdef").token("user", "alice")
        'user-69667e0df153a0f2'
        """
        if self._key is None or not text:
            return text
        digest = hmac.new(self._key, f"{kind}\0{text}".encode("utf-8", "surrogateescape"), sha256)
        return f"{kind}-{digest.hexdigest()[:TOKEN]}"

    def number(self, *parts: object) -> int:
        """Return a hash of some values as a positive 63-bit integer; with a key, one that only its holder can compute."""
        content = "\0".join(map(str, parts)).encode("utf-8", "surrogateescape")
        digest = blake2b(content, digest_size=IDENTITY, key=sha256(self._key).digest() if self._key else b"")
        return int.from_bytes(digest.digest(), "big") >> 1

    def applied(self, table: Table, row: Sequence[Any], owner: str) -> tuple[Any, ...]:
        """Return a row with tokens in its personal columns."""
        if self._key is None:
            return tuple(row)
        return tuple(
            self.token(column.personal, value)
            if column.personal and (column.personal != "text" or is_personal(value, owner))
            else value
            for column, value in zip(table.columns, row)
        )


def is_personal(text: str, owner: str) -> bool:
    """Return whether the value of a setting may name a person or a path.

    >>> is_personal("self,vader", "alice"), is_personal("/home/x", "alice"), is_personal("for_alice", "alice")
    (False, True, True)
    """
    return any(mark in text for mark in "/\\ ~@") or bool(owner and owner in text)


def read_key(path: Path) -> bytes:
    """Return the key of a file; if there is no such file, make one that only its owner may read.

    Raises
    ------
    CommlensError
        The file cannot be read or made, others may read it, or it is too short.
    """
    try:
        if not os.path.lexists(path):
            return _new_key(path)
        if path.stat().st_mode & 0o077:
            raise CommlensError(f"{path}: other users can read this key: chmod 600 {path}")
        key = read_regular(path, MOST_KEY).strip()
    except OSError as error:
        raise CommlensError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(key) < LEAST_KEY:
        raise CommlensError(
            f"{path}: a key has at least {LEAST_KEY} bytes; commlens makes one if there is no file"
        )
    return key


def _new_key(path: Path) -> bytes:
    key = secrets.token_hex(32).encode()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return key
