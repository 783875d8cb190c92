# SPDX-License-Identifier: Apache-2.0
"""Who talks to whom: messages and bytes from each process to each other.

>>> talk = commlens.matrix.read("job.db", kind="collective", comms=["s*.1"])  # doctest: +SKIP
>>> scipy.sparse.coo_array((talk.bytes, (talk.source, talk.destination)))  # doctest: +SKIP
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence

from commlens.algorithms.modelled import choices
from commlens.base.errors import CommlensError
from commlens.matrix.pairs import Pairs
from commlens.matrix.query import INSIDE, KINDS, MODELLED, Range, Selection, matching_regions, read_matrix
from commlens.profile import open_profile
from commlens.selection.names import check_communicators, matching_operations
from commlens.selection.peers import refuse, refuse_unkept

__all__ = ["KINDS", "Pairs", "read"]


def read(
    profile: str | os.PathLike[str],
    *,
    kind: str = "",
    comms: Sequence[str] = (),
    operations: Sequence[str] = (),
    regions: Sequence[str] = (),
    slices: Sequence[Range] = (),
    algorithms: Sequence[str] = (),
) -> Pairs:
    """Return who talks to whom.

    Parameters
    ----------
    profile : path
        A profile: a file, or a directory with several.
    kind : str
        One of KINDS; without one "p2p", or "collective" where operations are chosen.
    comms, operations, regions : sequences of str
        Only these communicators, procedures and code regions, as for `commlens matrix`; empty: all.
    slices : sequence of (first, last)
        Only these slices of time; empty: all.
    algorithms : sequence of str
        Of kind "modelled": what does a collective, as in "bcast=binomial".

    Returns
    -------
    Pairs
        Arrays of int64 of one length: `source` and `destination`, world ranks, and `messages` and `bytes`. What is
        counted for a block of ranks together is spread evenly; what has no pair at all is not in it.

    Raises
    ------
    CommlensError
        The profile cannot be read, or does not say it.
    """
    with open_profile(os.fspath(profile)) as connection:
        selection = selected(connection, kind, comms, operations, regions, slices, algorithms)
        return read_matrix(connection, selection).all


def selected(
    connection: sqlite3.Connection,
    kind: str,
    comms: Sequence[str],
    operations: Sequence[str],
    regions: Sequence[str],
    slices: Sequence[Range],
    algorithms: Sequence[str] = (),
) -> Selection:
    """Return what names mean in a profile.

    Raises
    ------
    CommlensError
        One of them means nothing there, or the profile does not tell it apart.
    """
    refuse(connection)
    kind = kind or ("collective" if operations else "p2p")
    if kind not in KINDS:
        raise CommlensError(f"unknown kind '{kind}'; use one of {', '.join(KINDS)}")
    if operations and not set(KINDS[kind]) <= {*INSIDE, MODELLED}:
        raise CommlensError(
            f"--op applies only to messages inside calls (--kind {', '.join(INSIDE)}), not to {kind}"
        )
    if kind == MODELLED and (regions or slices):
        raise CommlensError("a model cannot be split by region or slice")
    if algorithms and kind != MODELLED:
        raise CommlensError(f"--algorithm applies only to --kind {MODELLED}, not to {kind}")
    check_communicators(connection, comms)
    if slices:
        refuse_unkept(connection, "slice")
    return Selection(
        kind=kind,
        comms=tuple(comms),
        operations=matching_operations(connection, operations),
        regions=matching_regions(connection, regions),
        slices=tuple(slices),
        algorithms=choices(algorithms),
    )
