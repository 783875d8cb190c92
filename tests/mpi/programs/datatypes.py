# SPDX-License-Identifier: Apache-2.0
"""Datatypes that mpi4py makes and uses. One rank."""

from __future__ import annotations

from mpi4py import MPI

numbers = bytearray(8 * 64)
to = bytearray(8 * 64)
column = MPI.DOUBLE.Create_vector(4, 1, 4).Commit()
pair = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.INT, column]).Commit()
for kind, count in ((column, 2), (pair, 1), (MPI.DOUBLE, 3)):
    MPI.COMM_SELF.Bcast([numbers, count, kind], 0)
MPI.COMM_SELF.Sendrecv([numbers, 1, column], 0, 0, [to, 4, MPI.DOUBLE], 0, 0)
pair.Free()
column.Free()
