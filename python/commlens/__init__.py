# SPDX-License-Identifier: Apache-2.0
"""Reads the profiles that commlens writes: MPI seen by communicator."""
