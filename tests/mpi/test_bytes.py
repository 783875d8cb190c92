# SPDX-License-Identifier: Apache-2.0
"""Random sequences of MPI calls: every cell of the profile against the model of `bytes_model`."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from bytes_files import FILE_SIZE
from bytes_model import COLLECTIVE_FORMS, Counts, Key, expected_cells
from bytes_script import Script
from harness import Mpi, Result

HERE = Path(__file__).resolve().parent

# Both MPI libraries have bugs that random programs find; `bytes_script.py` avoids those we know, and these seeds
# were seen to run without commlens on Open MPI 4.1.4 and MPICH 4.0.2.
WORDS = re.compile(r"\w+")
FILE_FORMS = [
    *(
        "",
        "_at",
        "_all",
        "_at_all",
        "_shared",
        "_ordered",
        "_all_begin",
        "_all_end",
        "_at_all_begin",
        "_at_all_end",
    ),
    *("_ordered_begin", "_ordered_end"),
]
STEPS = 400
SEEDS = [(1, 3), (2, 4), (3, 5), (4, 2), (5, 3), (7, 5)]

CELLS = """
    SELECT c.id, c.name, c.kind, o.name, k.bin, SUM(x.calls), SUM(x.bytes_sent), SUM(x.bytes_received)
    FROM cell x JOIN key k ON k.id = x.key JOIN comm c ON c.id = k.comm JOIN op o ON o.id = k.op
    WHERE x.rank = ? GROUP BY c.id, o.name, k.bin
"""


def measured_cells(result: Result, world_rank: int) -> dict[Key, Counts]:
    """Return the cells of one rank from the profile, call sites added up, sets as the names of their members."""
    profile = result.open()
    names = {row["id"]: row["name"] for row in profile.rows("SELECT id, name FROM comm")}
    members: dict[int, set[str]] = {}
    for row in profile.rows("SELECT comm, member FROM comm_set"):
        members.setdefault(row["comm"], set()).add(names[row["member"]])
    cells: dict[Key, Counts] = {}
    for row in profile.rows(CELLS.replace("c.name, c.kind, o.name", "c.kind, o.name AS op"), world_rank):
        comm, kind, op, size_bin, *counts = row.values()
        who = frozenset() if kind == "none" else frozenset(members[comm] if kind == "set" else {names[comm]})
        assert (who, op, size_bin) not in cells, f"two communicators are the same: {sorted(who)}"
        cells[who, op, size_bin] = Counts(*counts)
    return cells


def differences(expected: dict[Key, Counts], measured: dict[Key, Counts]) -> list[str]:
    """Return one line per cell that is not as it must be."""
    return [
        f"{'+'.join(sorted(key[0])) or '-'} {key[1]} bin {key[2]}: expected {expected.get(key)}, got {measured.get(key)}"
        for key in sorted(expected.keys() | measured.keys(), key=lambda key: (sorted(key[0]), *key[1:]))
        if expected.get(key) != measured.get(key)
    ]


@pytest.mark.parametrize("callsites", ["0", "1"])
@pytest.mark.parametrize(("seed", "ranks"), SEEDS)
def test_every_cell_is_what_the_standard_says(mpi: Mpi, seed: int, ranks: int, callsites: str) -> None:
    print(f"seed {seed}, {ranks} ranks")  # pytest shows it when the test fails
    script = Script(
        seed, ranks, mpi.name == "mpich", not (mpi.name == "mpich" and mpi.release.startswith("4.2."))
    )
    script.build(STEPS)
    folder = mpi.fresh(f"bytes-{seed}")
    source = folder / "program.c"
    source.write_text(script.program())
    (folder / "in").write_bytes(bytes(FILE_SIZE))
    program = mpi.compile(source, None, flags=["-O0", "-Wno-unused", f"-I{HERE}"])

    # Open MPI 4.1's default way of writing collectively, "vulcan", corrupts its heap.
    env = {"OMPI_MCA_fcoll": "individual", "COMMLENS_CALLSITES": callsites}
    result = mpi.run(ranks, [program, folder], env=env, timeout=120)
    if result.rc != 0:
        mpi.skip_if_broken(mpi.run(ranks, [program, folder], env=env, timeout=120, mode="off"))
    assert result.rc == 0, result

    wrong = []
    for rank in range(ranks):
        log = iter((folder / f"log.{rank}").read_text().splitlines())
        expected = expected_cells(rank, script.calls[rank], log)
        wrong += [f"rank {rank}: {line}" for line in differences(expected, measured_cells(result, rank))]
    assert not wrong, f"seed {seed}: {len(wrong)} cells differ\n" + "\n".join(wrong[:60])


EXPECTED_PROCEDURES = {
    *COLLECTIVE_FORMS,
    *(f"File_{kind}{where}" for kind in ("read", "write") for where in FILE_FORMS),
    *(
        f"File_i{kind}{where}"
        for kind in ("read", "write")
        for where in ("", "_at", "_all", "_at_all", "_shared")
    ),
    *WORDS.findall("""
        Send Bsend Ssend Rsend Isend Ibsend Issend Irsend Send_init Ssend_init Recv Irecv Recv_init
        Sendrecv Sendrecv_replace Isendrecv Isendrecv_replace Probe Iprobe Mprobe Improbe Mrecv Imrecv
        Psend_init Precv_init Pready Pready_range Parrived Cancel Request_free Request_get_status
        Start Startall Wait Waitall Waitany Waitsome Test Testall Testany Testsome
        Put Get Accumulate Get_accumulate Rput Rget Raccumulate Rget_accumulate Fetch_and_op Compare_and_swap
        Win_create Win_allocate Win_allocate_shared Win_fence Win_lock Win_lock_all Win_post Win_start Win_complete
        Win_wait Win_test Win_flush Win_flush_local Win_sync Win_free
        Comm_split Comm_dup Comm_idup Cart_create Graph_create Dist_graph_create Dist_graph_create_adjacent
        Intercomm_create Comm_free File_open File_set_view File_seek File_seek_shared File_close
        """),
}


def test_the_sequences_use_all_that_they_claim() -> None:
    """Guards the generator: were it to stop making a kind of call, the comparison would not notice."""
    made: Counter[str] = Counter()
    for seed, ranks, mpi4 in [(*seed, mpi4) for seed in SEEDS for mpi4 in (False, True)]:
        script = Script(seed, ranks, mpi4)
        script.build(STEPS)
        made.update(call.name.removesuffix("_c") for calls in script.calls for call in calls)
    # bytes_script.py says why this one cannot be tested with the MPI libraries we have.
    missing = EXPECTED_PROCEDURES - made.keys() - {"Neighbor_alltoallw_init"}
    assert not missing, f"never made: {sorted(missing)}"
