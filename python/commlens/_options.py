# SPDX-License-Identifier: Apache-2.0
# DO NOT EDIT: written by gen/options.py from spec/options.toml.
"""The COMMLENS_ variables a run understands."""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """One of them."""

    type: str  # bool, number or text
    default: str
    environment_only: bool


OPTIONS: dict[str, Option] = {
    'COMMLENS_ENABLE': Option('bool', '1', False),
    'COMMLENS_CONFIG': Option('text', '/etc/commlens.conf', True),
    'COMMLENS_OUTPUT': Option('text', 'commlens-%p-%j.db', False),
    'COMMLENS_CALLSITES': Option('bool', '1', False),
    'COMMLENS_QUIET': Option('bool', '0', False),
    'COMMLENS_MPI': Option('text', 'auto', True),
    'COMMLENS_PATIENCE': Option('number', '3600', False),
    'COMMLENS_COMMS': Option('number', '4096', False),
    'COMMLENS_ARENA_DIR': Option('text', '', False),
    'COMMLENS_FLUSH_EVERY': Option('number', '0', False),
    'COMMLENS_AGGREGATORS': Option('number', '0', False),
}
