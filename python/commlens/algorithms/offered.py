# SPDX-License-Identifier: Apache-2.0
"""Which algorithms the MPI library of a run offers for a collective, and the variable that chooses one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from commlens.algorithms._offered import LIBRARIES, Library


@dataclass(frozen=True)
class Offer:
    """The algorithms of one collective.

    Attributes
    ----------
    variable : str
        The variable that chooses one of them.
    names : tuple of str
        Their names, in the order of their numbers, from 1.
    """

    variable: str
    names: tuple[str, ...]


def library_of(text: str) -> tuple[Library, tuple[int, int]] | None:
    """Return the library that MPI_Get_library_version names, and its version; None if its algorithms are unknown.

    >>> found = library_of("Open MPI v5.0.11, package: Debian")
    >>> (found[0].title, found[1]) if found else None
    ('Open MPI', (5, 0))
    >>> library_of("Open MPI v3.1.4") is library_of("MPI of tomorrow 1.0") is None
    True
    """
    for library in LIBRARIES.values():
        match = re.match(library.version, text, re.ASCII)
        # A damaged profile may have a version of any length.
        if match and len(match[1]) < 5 and len(match[2]) < 5:
            version = (int(match[1]), int(match[2]))
            return (library, version) if version >= min(library.since) else None
    return None


def offered(text: str, collective: str) -> Offer | None:
    """Return the algorithms for a collective of the library that MPI_Get_library_version names; None if unknown.

    A collective that the library always does in the same way has none.

    >>> offered("Open MPI v4.1.4", "alltoallv")
    Offer(variable='coll_tuned_alltoallv_algorithm', names=('basic_linear', 'pairwise'))
    >>> offered("Open MPI v4.1.4", "gatherv")
    Offer(variable='coll_tuned_gatherv_algorithm', names=())
    """
    found = library_of(text)
    if found is None:
        return None
    library, version = found
    names: tuple[str, ...] | None = None
    for since, lists in sorted(library.since.items()):
        if since <= version:
            names = lists.get(collective, names)
    if names is None and not library.is_complete:
        return None
    variable = library.variable.format(collective=collective, COLLECTIVE=collective.upper())
    return Offer(variable, names or ())
