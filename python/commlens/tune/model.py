# SPDX-License-Identifier: Apache-2.0
"""What the steps of tuning hand on: a case to measure, an algorithm to try, and the choice that measurements allow.

`plan` finds the places that are worth trying, `cases` makes cases of them, `replay` measures each case with each
algorithm, `decide` chooses, `rules` writes the choices for the MPI library, and `prove` runs the application with them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Case:
    """One collective on the communicators of one family and size, with messages of one size bin.

    Attributes
    ----------
    family : int
        Number of the family in the profile, `comm.family`.
    communicator : str
        Name of the family, as in reports.
    collective : str
        Lower case, without MPI_: "alltoall".
    comm_size : int
        Number of processes of the communicator.
    bin : int
        Size bin of the profile, `key.bin`; -1 if the blocks differ in size.
    message_bytes : int
        Mean message size of the calls, as the profile defines it, in bytes.
    """

    family: int
    communicator: str
    collective: str
    comm_size: int
    bin: int
    message_bytes: int


@dataclass(frozen=True, order=True)
class Candidate:
    """An algorithm of the MPI library with its segment size.

    Attributes
    ----------
    number : int
        Its number for the library's variable; 0 is the library's own choice.
    name : str
        Its name in spec/algorithms.toml; "default" for the library's own choice.
    segment_bytes : int
        Segment size; 0 if the messages are not cut.
    """

    number: int = 0
    name: str = "default"
    segment_bytes: int = 0


DEFAULT = Candidate()
"""The library's own choice."""


@dataclass(frozen=True)
class Choice:
    """The candidate that is faster than the library's own choice in a case with certainty.

    Attributes
    ----------
    case : Case
    candidate : Candidate
    default_ns, candidate_ns : float
        Median time of a call with the library's own choice and with the candidate.
    change, low, high : float
        Relative change of the time and its 95 % interval: -0.2 is 20 % shorter.
    rounds : int
        Number of rounds that were compared.
    """

    case: Case
    candidate: Candidate
    default_ns: float
    candidate_ns: float
    change: float
    low: float
    high: float
    rounds: int
