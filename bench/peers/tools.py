# SPDX-License-Identifier: Apache-2.0
"""The other profilers: which commit is built how, and in which configurations each is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.peers.sources import Source

MPIS = {"openmpi": "Open MPI", "mpich": "MPICH"}
COMMLENS = "commlens"


PEERS = (
    Source(
        "mpisee",
        "https://github.com/variemai/mpisee",
        "26cd27554af29197571c92914bb60f3d79c29077",
        (
            "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DMPI_C_COMPILER=mpicc.{mpi} -DMPI_CXX_COMPILER=mpicxx.{mpi} "
            "-DMPI_Fortran_COMPILER=mpifort.{mpi} -DCMAKE_Fortran_COMPILER=mpifort.{mpi} -DCMAKE_INSTALL_PREFIX={prefix}",
            "cmake --build build -j {jobs}",
            "cmake --install build",
        ),
        "lib*/libmpisee.so",
        needs=("libsqlite3-dev", "gfortran"),
    ),
    Source(
        "mpiP",
        "https://github.com/LLNL/mpiP",
        "8ff38c37777111543307fa40274caa96be8a916b",
        (
            "./configure CC=mpicc.{mpi} CXX=mpicxx.{mpi} F77=mpifort.{mpi} FC=mpifort.{mpi} --prefix={prefix}",
            # Its generator of wrappers writes the name of the user into the source.
            "LOGNAME=${{LOGNAME:-builder}} make -j {jobs}",
            "make install",
        ),
        "lib*/libmpiP.so",
        needs=("libunwind-dev", "binutils-dev", "libiberty-dev"),
    ),
    Source(
        "Caliper",
        "https://github.com/LLNL/Caliper",
        "74e48659cc770053ec5e1fed817336c59aadb84c",
        (
            # Without GOTCHA it wraps MPI by its profiling interface, and so can be preloaded: the program is not changed.
            "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DWITH_MPI=ON -DWITH_GOTCHA=OFF -DMPI_C_COMPILER=mpicc.{mpi} "
            "-DMPI_CXX_COMPILER=mpicxx.{mpi} -DCMAKE_INSTALL_PREFIX={prefix}",
            "cmake --build build -j {jobs}",
            "cmake --install build",
        ),
        "lib*/libcaliper.so",
    ),
    Source(
        "IPM",
        "https://github.com/nerscadmin/IPM",
        "02f0cdce630f0533e0aaadaccd8998a5e893968a",
        (
            "./bootstrap.sh",
            # Its configure does not look for a C compiler before libtool asks which one it is.
            "GCC=yes G77=yes ac_cv_fc_compiler_gnu=yes ./configure MPICC=mpicc.{mpi} MPIFC=mpifort.{mpi} MPICXX=mpicxx.{mpi} --prefix={prefix}",
            "make",
            "make install",
        ),
        "lib*/libipm.so",
        needs=("autoconf", "automake", "libtool", "gfortran"),
    ),
    Source(
        "TAU",
        "https://github.com/UO-OACISS/tau2",
        "c6fbe8e061537230076ffa990745d51b3bbb951c",
        (
            "./configure -c++=mpicxx.{mpi} -cc=mpicc.{mpi} -fortran=gfortran -mpi -prefix={prefix}",
            "make -j {jobs} install",
        ),
        "*/lib/shared-mpi/libTAU.so",
        needs=("gfortran",),
        with_submodules=True,
    ),
)
"""In the order of the page."""

BY_NAME = {peer.name: peer for peer in PEERS}

UNTRIED = {
    "Score-P": "it needs four libraries of its own (CubeW, CubeLib, OTF2, OPARI2), which are built and released apart"
}
"""Tools that no attempt was made to build, and why."""


@dataclass(frozen=True)
class Configuration:
    """A tool as it is run.

    Attributes
    ----------
    name : str
        As the page calls it.
    peer : str
        Name of the peer, or COMMLENS.
    variables : dict
        Environment. `{out}` is the folder for the output of a run, `{prefix}` where the tool is installed.
    why : str
        What this configuration is, and where the tool documents it.
    for_counts, for_cost : bool
        Whether it is compared with the model, and whether its cost is measured.
    """

    name: str
    peer: str
    variables: Mapping[str, str] = field(default_factory=dict)
    why: str = ""
    for_counts: bool = True
    for_cost: bool = True


CONFIGURATIONS = (
    Configuration(
        COMMLENS,
        COMMLENS,
        {"COMMLENS_OUTPUT": "{out}/profile.db", "COMMLENS_QUIET": "1"},
        "the defaults: communicators, call sites, message sizes, pairs of ranks, waiting",
    ),
    Configuration(
        "mpisee",
        "mpisee",
        {"MPISEE_OUTFILE": "{out}/mpisee.db"},
        "as its Readme says; it has no other option at run time",
    ),
    Configuration(
        "mpiP",
        "mpiP",
        {"MPIP": "-f {out}"},
        "the defaults of its user guide: one call site per call, found with libunwind",
        for_counts=False,
    ),
    Configuration(
        "mpiP -k 0",
        "mpiP",
        {"MPIP": "-k 0 -f {out}"},
        "without call sites, its cheapest",
        for_counts=False,
    ),
    Configuration(
        "mpiP -p -y -e",
        "mpiP",
        {"MPIP": "-p -y -e -f {out}"},
        "with histograms of message sizes and sizes of communicators, and all digits, its most detailed",
        for_cost=False,
    ),
    Configuration(
        "Caliper mpi-report",
        "Caliper",
        {"CALI_CONFIG": "mpi-report(output={out}/report.txt)"},
        "the recipe that its documentation of MPI shows: calls and time by function",
        for_counts=False,
    ),
    Configuration(
        "Caliper messages",
        "Caliper",
        {
            "CALI_SERVICES_ENABLE": "aggregate,event,mpi,recorder,timer",
            "CALI_EVENT_TRIGGER": "mpi.function",
            "CALI_MPI_BLACKLIST": "MPI_Wtime",
            "CALI_MPI_MSG_TRACING": "true",
            "CALI_RECORDER_FILENAME": "{out}/rank-%mpi.rank%.cali",
        },
        "its services, with sizes and communicators of messages; a file for each rank",
    ),
    Configuration(
        "IPM",
        "IPM",
        {"IPM_REPORT": "none", "IPM_LOG": "full", "IPM_LOGDIR": "{out}"},
        "a full log and no report at the end",
    ),
)
