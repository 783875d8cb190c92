# SPDX-License-Identifier: Apache-2.0
"""docs/guide/trouble.md explains messages that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MESSAGES = re.findall(r"^\| `(.*?)` \|", (ROOT / "docs/guide/trouble.md").read_text(), re.MULTILINE)


def sources() -> str:
    """Return the text of core/, with string literals that continue on the next line put together."""
    text = "\n".join(file.read_text() for file in sorted((ROOT / "core").rglob("*.c*")))
    return re.sub(r'"\s*\n\s*"', "", text)


def test_there_are_messages() -> None:
    assert len(MESSAGES) > 10


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_in_the_guide_is_one_the_library_says(message: str) -> None:
    said = sources()
    # Who speaks is put before a message elsewhere: "rank 3: ".
    parts = [part.strip(": ") for part in message.split("…")]
    assert [part for part in parts if part not in said] == []
