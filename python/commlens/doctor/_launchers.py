# SPDX-License-Identifier: Apache-2.0
# DO NOT EDIT: written by gen/launchers.py from spec/launchers.toml and spec/abi.toml.
"""Families of MPI libraries, and the variables of launchers."""

from __future__ import annotations

TITLES = {
    'openmpi': 'Open MPI',
    'mpich': 'MPICH',
    'abi': 'the standard ABI',
}

LIBRARIES: dict[str, tuple[str, ...]] = {
    'openmpi': ('libmpi.so.40', 'libmpi.so.0', 'libmpi_ibm.so', 'libmpi_mpifh.so', 'libmpi_usempi', 'libmpi_cxx.so.40'),
    'mpich': ('libmpich', 'libmpi.so.12', 'libmpifort.so.12', 'libmpicxx.so.12', 'libmpi_cray', 'libmpi_gnu', 'libmpi_intel', 'libmpi_nvidia', 'libmpi_amd', 'libmpi_aocc', 'libmpifort_cray', 'libmpifort_gnu', 'libmpifort_intel', 'libmpifort_nvidia', 'libmpifort_amd', 'libmpifort_aocc'),
    'abi': ('libmpi_abi.so', 'libmpifort_abi.so'),
}

LAUNCHERS: dict[str, tuple[str, ...]] = {
    'openmpi': ('orterun', 'prterun', 'prun', 'openmpi', 'ompi'),
    'mpich': ('hydra', 'mpich'),
    'abi': (),
}

NODE_VARIABLES = ('SLURM_JOB_NUM_NODES', 'SLURM_NNODES', 'PBS_NUM_NODES')
