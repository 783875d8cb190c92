# SPDX-License-Identifier: Apache-2.0
"""The communication matrix of a profile: messages and bytes from each process to each other process.

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
    """Read the communication matrix of a profile as sparse arrays.

    Parameters
    ----------
    profile : path
        Path of the profile: a file, or a directory of shards.
    kind : str
        One of KINDS. By default "p2p", or "collective" if `operations` is not empty.
    comms, operations, regions : sequences of str
        Only these communicators, procedures and code regions, as in `commlens matrix`; empty means all.
    slices : sequence of (first, last)
        Only these time slices, numbered from 0, both ends included; empty means all.
    algorithms : sequence of str
        For kind "modelled": the algorithm of a collective, such as "bcast=binomial".

    Returns
    -------
    Pairs
        Four int64 arrays of shape (n,), one element per pair of ranks: `source` and `destination` (world ranks),
        `messages` and `bytes`. Traffic that was counted for a block of ranks is spread evenly over the block. Traffic
        with an unknown end is not included.

    Raises
    ------
    CommlensError
        The profile cannot be read or does not contain this traffic, or a name does not exist in it.
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
    """Return the selection for these names, checked against the profile.

    Raises
    ------
    CommlensError
        A name does not exist in the profile, or the profile does not split traffic that way.
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
