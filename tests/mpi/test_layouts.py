# SPDX-License-Identifier: Apache-2.0
"""Calls with non-contiguous datatypes: counted where the elements of a block leave gaps in memory."""

from __future__ import annotations

from harness import Mpi

SQL = """
    SELECT o.name AS op, k.bin, SUM(x.calls) AS calls, SUM(x.noncontiguous) AS noncontiguous,
           SUM(x.bytes_sent) AS sent, SUM(x.bytes_received) AS received
    FROM cell x JOIN key k ON k.id = x.key JOIN op o ON o.id = k.op
    WHERE o.name LIKE ? GROUP BY 1, 2 ORDER BY 1, 2
"""


def test_calls_with_noncontiguous_datatypes(mpi: Mpi) -> None:
    result = mpi.run(1, [mpi.compile("layouts.c")])
    assert (result.rc, result.stdout) == (0, ""), result
    profile = result.open()
    profile.check()
    rows = {(row.pop("op"), row.pop("bin")): tuple(row.values()) for row in profile.rows(SQL, "%")}
    sends = {size_bin: counts for (op, size_bin), counts in rows.items() if op == "MPI_Send"}
    # bin of 2^k bytes is k + 1: (calls, with gaps, bytes sent, bytes received)
    assert sends == {
        0: (1, 0, 0, 0),
        1: (1, 0, 1, 0),
        2: (1, 0, 2, 0),
        3: (1, 1, 4, 0),
        4: (2, 0, 8 + 12, 0),
        5: (1, 1, 16, 0),
        6: (1, 1, 32, 0),
        7: (1, 0, 64, 0),
        8: (1, 0, 128, 0),
        9: (100, 50, 100 * 256, 0),
    }
    assert rows["MPI_Allgather", 10] == (3, 2, 3 * 512, 3 * 512)
    assert rows["MPI_Gatherv", -1] == (1, 1, 512, 512)
    # how often it was made with gaps; what it moved when started is in the same row
    assert rows["MPI_Send_init", 10] == (1, 1, 3 * 512, 0)
    assert rows["MPI_Recv_init", 10] == (1, 0, 0, 3 * 512)
    assert all(gaps == 0 for (op, _), (_, gaps, _, _) in rows.items() if op in ("MPI_Irecv", "MPI_Wait"))
