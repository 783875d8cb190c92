# SPDX-License-Identifier: Apache-2.0
"""The settings of a run: from defaults, the configuration file and the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from commlens.base.spelling import did_you_mean
from commlens.launch._options import OPTIONS
from commlens.launch.configuration import MOST_COMPLAINTS, UnusableError, excerpt, read_lines

YES, NO = ("1", "on", "yes", "true"), ("0", "off", "no", "false")
REFERENCE = "docs/reference/options.md lists all options"
KEYS = tuple(
    name.removeprefix("COMMLENS_").lower() for name, option in OPTIONS.items() if not option.environment_only
)
"""The keys that a configuration file can have."""


class Complaint(NamedTuple):
    """A problem with a setting, and advice."""

    text: str
    advice: str = ""


def wrong(name: str, value: str) -> str | None:
    """Return the error of a value, or None."""
    kind = OPTIONS[name].type
    if kind == "bool" and value not in YES + NO:
        return f"'{excerpt(value)}' is invalid; use 1 or 0"
    if kind == "number" and not re.fullmatch(r"[0-9]{1,9}", value):
        return f"'{excerpt(value)}' is not a whole number"
    if kind == "choice" and value not in OPTIONS[name].choices:
        return f"'{excerpt(value)}' is invalid; use {alternatives(OPTIONS[name].choices)}"
    if kind == "mode" and value and not is_mode(value):
        return f"'{excerpt(value)}' is invalid; use a mode from 0600 to 0644 without write permission for group and others"
    if kind == "share" and not re.fullmatch(r"0(\.[0-9]{0,9})?|1(\.0{0,9})?", value):
        return f"'{excerpt(value)}' is invalid; use a number from 0 to 1, such as 0.25"
    return None


def alternatives(choices: Sequence[str]) -> str:
    """Return choices as in "off, p2p or all".

    >>> alternatives(["off", "p2p", "all"])
    'off, p2p or all'
    """
    return " or ".join([", ".join(choices[:-1]), choices[-1]]) if len(choices) > 1 else choices[0]


def is_mode(text: str) -> bool:
    """Return whether this is the octal mode of a file that only its owner may write."""
    if not re.fullmatch("[0-7]{3,4}", text):
        return False
    mode = int(text, 8)
    return mode & 0o600 == 0o600 and mode & ~0o644 == 0


def key_advice(key: str) -> str:
    """Return the advice about a key that a configuration file cannot have.

    >>> key_advice("COMMLENS_MATRIX"), key_advice("detial"), key_advice("config")
    ('did you mean matrix?', 'did you mean detail?', 'only the environment can set COMMLENS_CONFIG')
    """
    word = key.lower().removeprefix("commlens_")
    name = f"COMMLENS_{word.upper()}"
    if name in OPTIONS and OPTIONS[name].environment_only:
        return f"only the environment can set {name}"
    return did_you_mean(word, KEYS, 1).lstrip("; ") or REFERENCE


def read_settings(env: Mapping[str, str]) -> tuple[dict[str, str], list[Complaint]]:
    """Return the settings as core/base/options.cpp reads them, and its warnings."""
    values = {name: option.default for name, option in OPTIONS.items()}
    found: list[Complaint] = []

    def put(name: str, value: str) -> str | None:
        complaint = wrong(name, value)
        if complaint is None:
            values[name] = value
            return None
        return f"{complaint}; {values[name] or 'the default'} is used instead"

    config = env.get("COMMLENS_CONFIG", OPTIONS["COMMLENS_CONFIG"].default)
    try:
        lines = read_lines(Path(config))
    except UnusableError as error:
        lines = []
        if "COMMLENS_CONFIG" in env or not error.is_absent:
            found.append(Complaint(f"configuration {config} is not used: {error}"))
    complaints = 0
    for number, text in enumerate(lines, 1):
        line = text.partition("#")[0].strip(" \t\r")
        key, equals, value = (part.strip(" \t\r") for part in line.partition("="))
        name = f"COMMLENS_{key.upper()}"
        if not line:
            continue
        complaint: str | None = f"'{excerpt(line)}' is not an option and is ignored"
        is_known = bool(equals) and key in KEYS
        if is_known:
            complaint = put(name, value)
        if complaint is not None and (complaints := complaints + 1) <= MOST_COMPLAINTS:
            found.append(
                Complaint(f"{config}:{number}: {complaint}", REFERENCE if is_known else key_advice(key))
            )
    if complaints > MOST_COMPLAINTS:
        more = complaints - MOST_COMPLAINTS
        found.append(Complaint(f"{config}: and {more} more invalid lines", REFERENCE))
    for name, value in env.items():
        if not name.startswith("COMMLENS_"):
            continue
        if name in OPTIONS:
            bad = put(name, value)
            if bad is not None:
                found.append(Complaint(f"{name}: {bad}", REFERENCE))
        else:
            hint = did_you_mean(name, list(OPTIONS)).lstrip("; ")
            found.append(Complaint(f"{name} is not an option and is ignored", hint or REFERENCE))
    return values, found
