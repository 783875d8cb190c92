# SPDX-License-Identifier: Apache-2.0
"""Random legal MPI programs, and an independent model of their profiles."""
