# SPDX-License-Identifier: Apache-2.0
# DO NOT EDIT: written by gen/options.py from spec/options.toml.
"""The COMMLENS_ variables of a run."""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """One variable."""

    type: str  # bool, number, text, choice, mode or share
    default: str
    environment_only: bool
    choices: tuple[str, ...]  # of type choice


OPTIONS: dict[str, Option] = {
    'COMMLENS_ENABLE': Option('bool', '1', False, ()),
    'COMMLENS_SAMPLE': Option('share', '1', False, ()),
    'COMMLENS_SKIP': Option('text', '', False, ()),
    'COMMLENS_CONFIG': Option('text', '/etc/commlens.conf', True, ()),
    'COMMLENS_OUTPUT': Option('text', 'commlens-%p-%j.db', False, ()),
    'COMMLENS_MODE': Option('mode', '', False, ()),
    'COMMLENS_COMMAND_LINE': Option('choice', 'masked', False, ('masked', 'program', 'full')),
    'COMMLENS_LABEL': Option('text', '', False, ()),
    'COMMLENS_SETTINGS': Option('choice', 'all', False, ('all', 'labels')),
    'COMMLENS_CALLSITES': Option('bool', '1', False, ()),
    'COMMLENS_FRAMES': Option('number', '1', False, ()),
    'COMMLENS_TUNE': Option('text', '', False, ()),
    'COMMLENS_WRAPPERS': Option('text', '', False, ()),
    'COMMLENS_QUIET': Option('bool', '0', False, ()),
    'COMMLENS_MPI': Option('text', 'auto', True, ()),
    'COMMLENS_PATIENCE': Option('number', '3600', False, ()),
    'COMMLENS_COMMS': Option('number', '1024', False, ()),
    'COMMLENS_ARENA_DIR': Option('text', '', False, ()),
    'COMMLENS_HANG_SIGNAL': Option('text', '', False, ()),
    'COMMLENS_FLUSH_EVERY': Option('number', '0', False, ()),
    'COMMLENS_HISTORY': Option('number', '64', False, ()),
    'COMMLENS_AGGREGATORS': Option('number', '0', False, ()),
    'COMMLENS_DETAIL': Option('choice', 'full', False, ('full', 'summary')),
    'COMMLENS_WAITING': Option('choice', '1', False, ('0', '1', 'barrier')),
    'COMMLENS_MATRIX': Option('choice', 'p2p', False, ('off', 'p2p', 'all')),
    'COMMLENS_MATRIX_BY': Option('choice', 'none', False, ('none', 'region', 'slice', 'both')),
    'COMMLENS_MATRIX_PAIRS': Option('number', '65536', False, ()),
    'COMMLENS_REORDER_MIN_GAIN': Option('number', '10', False, ()),
    'COMMLENS_REGIONS': Option('text', '', False, ()),
    'COMMLENS_ADOPT': Option('text', '', True, ()),
    'COMMLENS_PAUSED': Option('bool', '0', False, ()),
    'COMMLENS_EXECUTIONS': Option('number', '16', False, ()),
    'COMMLENS_ITERATIONS': Option('number', '1024', False, ()),
    'COMMLENS_METRIC_SERIES': Option('number', '0', False, ()),
    'COMMLENS_THREADS': Option('choice', 'sum', False, ('sum', 'each')),
    'COMMLENS_CLOCK': Option('choice', 'sampled', False, ('sampled', 'every')),
    'COMMLENS_COUNTERS': Option('text', '', False, ()),
    'COMMLENS_PVARS': Option('text', '', False, ()),
    'COMMLENS_DATATYPES': Option('bool', '0', False, ()),
    'COMMLENS_PCONTROL': Option('choice', 'auto', False, ('auto', 'off', 'mpip', 'ipm', 'aps', 'mpitrace', 'mpisee')),
}
