# SPDX-License-Identifier: Apache-2.0
"""The comparison with other profilers: their outputs are read, counts are compared, results are kept, the page is whole.

The outputs are made up. Nothing of another tool is built or run.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench.peers import (
    applications,
    build,
    command,
    correct,
    cost,
    features,
    hosts,
    model,
    outputs,
    page,
    places,
    runs,
    state,
)  # fmt: skip
from bench.peers.outputs import OutputError, Row
from bench.peers.results import ENOUGH, Budget, Store, of_one_version
from bench.peers.tools import CONFIGURATIONS, PEERS

from commlens.overhead.estimate import FEWEST


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep everything below a folder of the test."""
    for name in ("SOURCES", "INSTALLED", "LOGS", "RESULTS", "PROGRAMS"):
        monkeypatch.setattr(places, name, tmp_path / name.lower())
    return tmp_path


# ---- outputs ----

MPIP_REPORT = """\
@ mpiP
---------------------------------------------------------------------------
@--- Callsites: 3 ----------------------------------------------------------
---------------------------------------------------------------------------
 ID Lev File/Address        Line Parent_Funct             MPI_Call
  1   0 ring.c                 7 main                     Send
---------------------------------------------------------------------------
@--- Callsite Time statistics (all, milliseconds): 3 ----------------------
---------------------------------------------------------------------------
Name              Site Rank  Count      Max     Mean      Min   App%   MPI%
Send                 1    0      5    0.200    0.100    0.050   1.00   2.00
Send                 1    *      5    0.200    0.100    0.050   1.00   2.00

Send                 2    0      2    0.200    0.100    0.050   1.00   2.00
Reduce_scatter_block    3    1      4    0.200    0.100    0.050   1.00   2.00
---------------------------------------------------------------------------
@--- Callsite Message Sent statistics (all, sent bytes) -------------------
---------------------------------------------------------------------------
Name              Site Rank   Count       Max      Mean       Min       Sum
Send                 1    0       5   10.0000    8.0000    4.0000   40.0000
Send                 1    *       5   10.0000    8.0000    4.0000   40.0000

Send                 2    0       2 1234567.0000 1234567.0000 1234567.0000 2469134.0000
---------------------------------------------------------------------------
@--- End of Report --------------------------------------------------------
"""


def test_a_report_of_mpip_has_the_sums_of_its_call_sites(tmp_path: Path) -> None:
    (tmp_path / "ring.2.77.1.mpiP").write_text(MPIP_REPORT)
    assert list(outputs.read_mpip(tmp_path, "openmpi")) == [
        Row("MPI_Reduce_scatter_block", 4, 1),
        Row("MPI_Send", 7, 0, moved=(2469174,)),
    ]


def test_a_database_of_mpisee_has_its_communicators(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "mpisee.db")) as db:
        db.executescript("""
            CREATE TABLE operations (id INTEGER, operation TEXT);
            INSERT INTO operations VALUES (0, 'Send'), (1, 'Fence');
            CREATE TABLE comms (id INTEGER, name TEXT, size INTEGER);
            INSERT INTO comms VALUES (1, 'W0.0', 2), (2, 's0.1', 1);
            CREATE TABLE data (rank INTEGER, comm_id INTEGER, operation_id INTEGER, calls INTEGER, volume INTEGER);
            INSERT INTO data VALUES (0, 1, 0, 3, 30), (0, 1, 0, 4, 400), (1, 2, 0, 1, 5), (1, 2, 1, 2, 0);
        """)
    assert sorted(outputs.read_mpisee(tmp_path, "mpich")) == [
        Row("MPI_Send", 1, 1, "2 s0.1", 1, (5,)),
        Row("MPI_Send", 7, 0, "1 W0.0", 2, (430,)),
        Row("MPI_Win_fence", 2, 1, "2 s0.1", 1, (0,)),
    ]


def test_records_of_caliper_give_calls_bytes_and_communicators_of_a_process() -> None:
    records = [
        {"event.begin#mpi.function": "MPI_Isend", "count": 3},
        {"event.end#mpi.function": "MPI_Isend", "path": "MPI_Isend", "sum#region.count": 3},
        {"mpi.comm": "2", "mpi.comm.size": "4", "path": "MPI_Isend", "sum#mpi.msg.size": 12, "sum#mpi.send.count": 3},
        {"mpi.comm": "2", "mpi.comm.size": "4", "path": "main/MPI_Waitall", "sum#mpi.msg.size": 20, "sum#mpi.recv.count": 5},
        {"event.end#mpi.function": "MPI_Irecv", "path": "MPI_Irecv", "sum#region.count": 5},
        {"event.end#mpi.function": "MPI_Waitall", "path": "MPI_Waitall", "sum#region.count": 1},
    ]  # fmt: skip
    assert list(outputs.parse_caliper(json.dumps(records), 1)) == [
        Row("MPI_Isend", 3, 1, moved=(12,)),
        Row("MPI_Irecv", 5, 1, moved=(20,)),
        Row("MPI_Waitall", 1, 1),
        Row("MPI_Isend" + outputs.ON_COMM, 3, 1, "1/2", 4, is_local=True),
        Row("MPI_Irecv" + outputs.ON_COMM, 5, 1, "1/2", 4, is_local=True),
    ]


def test_a_log_of_ipm_has_the_calls_of_its_tasks(tmp_path: Path) -> None:
    (tmp_path / "job.ipm.xml").write_text("""\
<task ipm_version="1" mpi_rank="0" mpi_size="2" >
<func name="MPI_Send" count="9" bytes="3.0000e+01" > 0.0 </func>
<hent key="A" call="MPI_Send" bytes="10" orank="1" region="0" count="3" tid="0" >0.1 0.0 0.1</hent>
<hent key="B" call="MPI_Send" bytes="0" orank="1" region="0" count="6" tid="0" >0.1 0.0 0.1</hent>
</task>
<task ipm_version="1" mpi_rank="1" mpi_size="2" >
<hent key="C" call="MPI_Barrier" bytes="0" orank="0" region="0" count="2" tid="0" >0.1 0.0 0.1</hent>
</task>
""")
    assert list(outputs.read_ipm(tmp_path, "openmpi")) == [
        Row("MPI_Barrier", 2, 1),
        Row("MPI_Send", 9, 0, moved=(30,)),
    ]


@pytest.mark.parametrize(
    "read", [outputs.read_commlens, outputs.read_mpisee, outputs.read_mpip, outputs.read_caliper]
)
def test_a_missing_or_broken_output_is_told(tmp_path: Path, read: Any) -> None:
    with pytest.raises(OutputError):
        list(read(tmp_path, "openmpi"))
    for name in ("profile.db", "a.mpiP"):
        (tmp_path / name).write_text("nothing that can be read")
    with pytest.raises(OutputError):
        list(read(tmp_path, "openmpi"))


# ---- the comparison ----


def right_rows() -> list[Row]:
    """Return what a tool must say of Listing 1 on four ranks."""
    rows = [Row("MPI_Allreduce", 30, rank, "W", 4, (120, 120)) for rank in range(4)]
    rows += [Row("MPI_Allreduce", 100, rank, f"s{rank // 2}", 2, (1600, 1600)) for rank in range(4)]
    return rows + [Row(op, 4, 0) for op in ("MPI_Comm_split", "MPI_Comm_free")]


def test_a_right_profile_is_right_and_each_mistake_is_seen() -> None:
    truth = model.of_listing1(4)
    right = correct.compare(truth, right_rows())
    assert (right["calls"], right["bytes"], right["comms"], right["said"]) == (
        [3, 0, 0],
        [1, 0, 0],
        [3, 0],
        [],
    )

    rows = right_rows()
    lost = correct.compare(truth, [rows[0]._replace(calls=29), *rows[1:]])
    assert (lost["calls"], lost["missed"], lost["wrong_calls"]) == ([2, 1, 0], 1, ["MPI_Allreduce"])
    assert lost["said"] == ["MPI_Allreduce: 519 calls of 520"]

    exchanged = correct.compare(truth, [rows[0]._replace(moved=(121, 119)), *rows[1:]])
    assert (exchanged["bytes"], exchanged["wrong_bytes"]) == ([0, 1, 0], ["MPI_Allreduce"])

    merged = correct.compare(truth, [row._replace(comm="s0") if row.comm == "s1" else row for row in rows])
    assert (merged["calls"], merged["comms"]) == ([3, 0, 0], [1, 2])

    without = correct.compare(truth, [row._replace(comm=None, moved=None) for row in rows[:-1]])
    assert (without["calls"], without["bytes"], without["comms"]) == ([2, 0, 1], [0, 0, 1], None)
    assert without["missing"] == ["MPI_Comm_free"]


def test_one_number_of_bytes_may_mean_what_is_sent_received_or_both() -> None:
    volume = model.Volume(1, sent=3, received=5, message=4)
    kinds = {n: correct.kind_of_bytes(volume, [n]) for n in (3, 4, 5, 8, 9, 0)}
    assert [n for n, kind in kinds.items() if kind == correct.RIGHT] == [3, 4, 5, 8]
    assert (kinds[9], kinds[0], correct.kind_of_bytes(volume, None)) == (
        correct.WRONG,
        correct.ABSENT,
        correct.ABSENT,
    )


def test_numbers_of_communicators_of_one_process_are_compared_process_by_process() -> None:
    calls = [Row(op, n) for op, n in (("MPI_Allreduce", 520), ("MPI_Comm_split", 4), ("MPI_Comm_free", 4))]
    of_comms = [
        Row("MPI_Allreduce" + outputs.ON_COMM, n, rank, f"{rank}/{comm}", is_local=True)
        for rank in range(4)
        for comm, n in ((2, 30), (3, 100))
    ]
    assert correct.compare(model.of_listing1(4), [*calls, *of_comms])["comms"] == [8, 0]
    assert correct.compare(model.of_listing1(4), [*calls, *of_comms[1:]])["comms"] == [7, 1]


def test_the_witness_must_agree_with_the_paper(tmp_path: Path) -> None:
    lines = ["MPI_Bcast 0,1#0 2 10 80 80 0", "MPI_Barrier 0,1#0 2 10 0 0 0", "MPI_Allreduce 0,1#0 2 1 8 8 8"]
    for rank in range(2):
        (tmp_path / f"witness.{rank}").write_text("\n".join(lines))
    truth = model.of_app("bcast_barrier", 2, [10], tmp_path.glob("witness.*"))
    assert (truth.total["MPI_Bcast"].calls, truth.total["MPI_Bcast"].sent) == (20, 160)
    assert truth.comms["0,1#0"]["MPI_Barrier"] == 20
    with pytest.raises(model.WitnessError, match="MPI_Bcast 20 calls, 22 on paper"):
        model.of_app("bcast_barrier", 2, [11], tmp_path.glob("witness.*"))


def test_a_feature_is_there_only_with_all_its_calls_and_communicators() -> None:
    reused = next(one for one in features.FEATURES if one.mode == "reused")
    rows = [Row("MPI_Allreduce", 4, comm=f"c{n}") for n in range(7)]
    assert features.checked(reused, rows) == "yes"
    assert features.checked(reused, [row._replace(comm="c0") for row in rows]) == "no: 1 communicators of 7"
    assert (
        features.checked(reused, [row._replace(comm=None) for row in rows])
        == "no: communicators are not told apart"
    )
    assert features.checked(reused, rows[1:]) == "no: MPI_Allreduce 24 of 28 calls"
    assert features.checked(reused, []) == "no: MPI_Allreduce is not counted"


# ---- results ----


def test_results_are_kept_replaced_and_asked_for_by_version() -> None:
    store = Store("part")
    store.put(("a", "b"), "1", value=1)
    store.put(("a", "b"), "2", value=2)
    with store.path.open("a") as file:
        file.write('{"key": ["c"], "ver')  # killed here
    again = Store("part")
    assert [record["value"] for record in again] == [2]
    assert again.has(("a", "b"), "2")
    assert not again.has(("a", "b"), "1")
    again.add_facts({"commit": "abc", "machine": "one"})
    again.add_facts({"commit": "def", "machine": "one"})
    assert Store("part").facts() == {"commit": "abc; def", "machine": "one"}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
    """Replace runs by numbers; return the list of what was run."""
    done: list[tuple[str, int]] = []

    def run(
        configuration: Any,
        _setup: cost.Setup,
        _argv: Any,
        _folder: Path,
        round: int,
        position: int,
        _limit: float,
    ) -> dict[str, Any]:
        name = "baseline" if configuration is None else configuration.name
        if position > 0:  # not the run before the first round
            done.append((name, round))
        if name == "mpisee":
            return {"tool": name, "failure": "signal 11", "command": "mpirun ./app"}
        ns = 1_000_000 + 1000 * round + (0 if configuration is None else 50_000 * len(name))
        times = {f"{part}_ns": ns for part in ("net", "hook", "wrap", "finalize")}
        return {
            "tool": name,
            "failure": "",
            "round": round,
            "position": position,
            **times,
            "memory_bytes": ns,
            "output_bytes": ns,
        }

    monkeypatch.setattr(cost, "measured", run)
    monkeypatch.setattr(cost, "build_app", lambda *_: Path("app"))
    chosen = [one for one in CONFIGURATIONS if one.name in ("commlens", "mpisee", "mpiP")]
    monkeypatch.setattr(runs, "present", lambda *_, **__: chosen)
    monkeypatch.setattr(runs, "version", lambda one, _mpi: one.name)
    yield done


SETUPS = [cost.Setup("openmpi", 2, name, (10,)) for name in ("halo", "cg")]


def rewrite(store: Store, record: dict[str, Any], **changes: Any) -> None:
    """Change fields of a stored result."""
    fields = {name: value for name, value in record.items() if name not in ("key", "version")}
    store.put(record["key"], record["version"], **{**fields, **changes})


def cells(folder: Path) -> list[cost.Cell]:
    """Return the programs of two parts."""
    return [
        *cost.cells_of(Store("overhead", commit="abc"), SETUPS, folder),
        *cost.cells_of(Store("finalize"), SETUPS[:1], folder),
    ]


def test_rounds_go_on_where_they_stopped(measured: list[tuple[str, int]], tmp_path: Path) -> None:
    cost.in_turns(cells(tmp_path)[:2], 1, Budget(None))
    assert len(measured) == 8
    cost.in_turns(cells(tmp_path)[:2], 3, Budget(0))  # no time: nothing begins
    assert len(measured) == 8
    cost.in_turns(cells(tmp_path)[:2], 3, Budget(None))
    assert {round for _, round in measured[8:]} == {2, 3}
    # A tool that failed twice with a program is not run with it again.
    assert sum(name == "mpisee" for name, _ in measured) == 4
    cost.in_turns(cells(tmp_path)[:2], 3, Budget(None))
    assert len(measured) == 8 + 8 + 6


def test_rounds_of_all_parts_take_turns(measured: list[tuple[str, int]], tmp_path: Path) -> None:
    cost.in_turns(cells(tmp_path), 2, Budget(None))
    assert [round for name, round in measured if name == "baseline"] == [1, 1, 1, 2, 2, 2]


@pytest.mark.usefixtures("measured")
def test_the_time_that_is_left_counts_only_missing_rounds(tmp_path: Path) -> None:
    assert cost.needed(cells(tmp_path), 12) == (
        "3 programs (3 of them never measured) need 4.5 minutes for 6 rounds, 9.0 minutes for 12 rounds"
    )
    cost.in_turns(cells(tmp_path), 4, Budget(None))
    for part in ("overhead", "finalize"):
        store = Store(part)
        for record in list(store):
            rewrite(store, record, seconds=20)
    assert (
        cost.needed(cells(tmp_path), 12)
        == "3 programs need 2.0 minutes for 6 rounds, 8.0 minutes for 12 rounds"
    )


@pytest.mark.usefixtures("measured")
def test_a_program_that_hangs_without_a_tool_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def hang(
        _leg: Any, _setup: Any, _argv: Any, _folder: Path, _round: int, position: int, _limit: float
    ) -> dict[str, Any]:
        tried.append(position)
        return {"tool": "baseline", "failure": "hung: not ended after 60 s", "command": "mpirun ./app"}

    monkeypatch.setattr(cost, "measured", hang)
    cost.in_turns(cells(tmp_path)[:1], 6, Budget(None))
    assert tried == [0]
    assert "1 programs need 0.0 minutes" in cost.needed(
        [replace(cell, store=Store("overhead")) for cell in cells(tmp_path)[:1]], 6
    ).replace(" (1 of them never measured)", "")
    page.write(tmp_path / "page.md")


class Clock(Budget):
    """A budget whose time is over after so many seconds of rounds."""

    def __init__(self, cells: list[cost.Cell], seconds: float) -> None:
        self.cells, self.seconds = cells, seconds

    def left(self) -> float:
        return self.seconds - sum(float(record["seconds"]) for cell in self.cells for record in cell.store)

    def allows(self, seconds: float) -> bool:
        return seconds <= self.left()


def test_if_time_is_short_the_first_programs_get_six_rounds() -> None:
    def cell(name: str, seconds: float) -> cost.Cell:
        store = Store(name)

        def measure(number: int) -> None:
            store.put((name, str(number)), "1", seconds=seconds, runs=[])

        return cost.Cell(store, (name,), "1", measure)

    found = [cell("a", 10), cell("b", 100), cell("c", 1)]
    clock = Clock(found, 200)
    cost.in_turns(found, 30, clock)
    assert [len(list(one.store)) for one in found] == [9, 1, 10]
    cost.in_turns(found, 6, Budget(None))
    assert [len(list(one.store)) for one in found] == [9, 6, 10]


def test_rounds_of_other_versions_are_not_mixed() -> None:
    old = [{"version": "1", "at": n} for n in range(9)]
    new = [{"version": "2", "at": 10 + n} for n in range(6)]
    assert of_one_version(old + new[:5]) == old
    assert of_one_version(old + new) == new
    assert of_one_version(old[:2] + new[:1]) == new[:1]
    assert of_one_version([]) == []
    assert ENOUGH == FEWEST


@pytest.mark.usefixtures("measured")
def test_a_part_of_another_library_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = frozenset({("openmpi", "new"), ("mpich", "other")})
    monkeypatch.setattr(state, "built", lambda: now)
    cost.in_turns(cells(tmp_path)[:2], 1, Budget(None))
    assert state.head(["overhead", "calls"])[2].startswith("| overhead | Open MPI `commlens` | abc | ")
    assert not any("Not of one library" in line for line in state.head(["overhead", "calls"]))
    said = "\n".join(state.text(["overhead", "calls"]))
    assert "of another library" in said
    assert "make peers AGAIN=overhead" in said
    assert "calls        not measured" in said

    counts = Store("instructions", commit="def")
    counts.put(("openmpi", "mpiP"), "1", failure="", command="", counts=[])  # depends on no library of ours
    assert state.state_of("instructions") is None
    record = counts.put(("openmpi", "commlens"), "new A=1;", failure="", command="", counts=[])
    rewrite(counts, record, at=record["at"] + 60)
    found = state.states(["overhead", "instructions"])
    assert state.others(found, now) == ["overhead"]
    assert "**Not of one library**: overhead is" in "\n".join(state.head(["overhead", "instructions"]))


# ---- the page ----


def test_an_empty_page_says_what_is_not_measured(tmp_path: Path) -> None:
    page.write(tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert text.count("Not measured yet.") == 6
    assert text.count("Not measured yet in at least 6 rounds.") == 5
    assert not re.search(r"@[A-Z_]+@", text)
    assert "In none of 0 comparisons" in text


@pytest.mark.usefixtures("measured")
def test_the_page_shows_failures_and_where_another_tool_costs_less(tmp_path: Path) -> None:
    cost.in_turns(cells(tmp_path)[:2], 6, Budget(None))
    built = Store("build")
    built.put(("mpisee", "openmpi"), "1", outcome="built", library="l")
    built.put(("TAU", "mpich"), "1", outcome="failed", command="make install", why="a.h: no such file")
    checks = Store("correct")
    checks.put(("openmpi", "none", "halo"), "", failure="", command="")
    checks.put(
        ("openmpi", "none", "random 7"), "", failure="signal 6", command=""
    )  # a fault of the MPI library
    result = correct.compare(model.of_listing1(4), right_rows())
    checks.put(("openmpi", "commlens", "halo"), "1", failure="", command="", **result)
    checks.put(
        ("openmpi", "mpisee", "halo"), "1", failure="signal 11: broken | pipe", command="mpirun ./halo"
    )
    checks.put(("openmpi", "mpisee", "random 7"), "1", failure="signal 6", command="")
    counts = Store("instructions")
    for name, number in (("baseline", 100), ("commlens", 210), ("mpiP", 900), ("mpisee", 150)):
        counts.put(("openmpi", name), "1", failure="", command="", counts=[["Barrier", 1, number]])
    page.write(tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()

    assert "| [TAU](https://github.com/UO-OACISS/tau2) |" in text
    assert "**failed** in `make install`: a.h: no such file" in text
    assert "| commlens | 1 | 0 | 3 of 3 | 0.0 % | 1 of 1 | 3 of 3 |" in text
    assert "| mpisee | 1 | 1 | – |  | – | – |" in text
    assert "- signal 11: broken \\| pipe: halo. `mpirun ./halo`" in text
    assert "| Barrier | 1 | 100 | 110 | **50** | 800 |" in text
    assert "| instructions | mpisee | 50 | 110 | Barrier, 1 communicators, Open MPI | **not known** |" in text
    assert "- mpisee, halo 10, 2 ranks, Open MPI, 2 times: signal 11. `mpirun ./app`" in text
    assert re.search(
        r"\| net, added share \| mpiP \| [0-9. %to]+\| [0-9. %to]+\| `cg 10`, 2 ranks, Open MPI; `halo 10`, 2 ranks, Open MPI \|",
        text,
    ), "mpiP was made to cost less"


# ---- applications ----


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8, 16])
def test_an_application_has_the_same_problem_for_all_ranks(ranks: int) -> None:
    x, y, z = applications.grid(ranks)
    assert x * y * z == ranks
    words = list(map(str, applications.of_amg(ranks, 48)))
    sides = [int(p) * int(n) for p, n in zip(words[3:6], words[7:10])]
    assert sides == [48, 48, 48]
    (text,) = applications.hpccinf(ranks, 720).values()
    rows, columns = (int(re.search(rf"^(\d+) +{name}$", text, re.M)[1]) for name in ("Ps", "Qs"))  # type: ignore[index]
    assert rows * columns == ranks
    assert re.search(r"^720 +Ns$", text, re.M)


def test_inputs_of_applications_have_their_size() -> None:
    (melt,) = applications.melt(2, 800).values()
    assert [line.split() for line in melt.splitlines() if line.startswith("run")] == [["run", "800"]]


def test_an_application_that_is_not_there_is_not_measured(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert {setup.program for setup in cost.setups_of_overhead(["openmpi"], [2])} == set(
        cost.PROGRAMS_OF_OVERHEAD
    )
    program = home / "installed" / "AMG-mpich" / "bin" / "amg"
    program.parent.mkdir(parents=True)
    program.write_text("")
    (found,) = (one for one in cost.setups_of_overhead(["openmpi", "mpich"], [2]) if one.application)
    assert found.key == ("mpich", "2", "AMG 80 cells a side")
    assert list(map(str, found.argv()))[1:] == ["-problem", "1", "-P", "2", "1", "1", "-n", "40", "80", "80"]


def test_several_hosts_are_for_applications_with_open_mpi_and_enough_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    found = cost.setups_of_overhead(["openmpi", "mpich"], [2, 8], counts=[1, 4])
    assert {(setup.mpi, setup.ranks) for setup in found if setup.hosts == 4} == {(hosts.MPI, 8)}
    assert {setup.program for setup in found if setup.hosts == 4} == {"LAMMPS", "Quantum-ESPRESSO", "hpcc"}
    assert next(setup for setup in found if setup.hosts == 4).key[1] == "8 on 4 hosts"


# ---- sources and commands ----


def test_without_network_and_copies_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: Any, **__: Any) -> Path:
        raise build.NoSourceError("unable to access: could not resolve host")

    monkeypatch.setattr(build, "fetch", no_network)
    with pytest.raises(SystemExit) as ended:
        build.build_all(None, [peer.name for peer in PEERS], ["openmpi"])
    (line,) = str(ended.value).splitlines()
    assert "git clone mpisee, mpiP, Caliper, IPM, tau2" in line
    assert "make peers PEERS=DIR" in line


def test_a_build_that_fails_is_a_result_with_its_command_and_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = PEERS[0].__class__(
        "toy",
        "https://localhost/toy",
        "0" * 40,
        ("true {mpi}", "echo 'a.c:1: error: no such type'; false"),
        "lib/*.so",
    )
    (tmp_path / "source").mkdir()
    monkeypatch.setattr(build, "fetch", lambda *_: tmp_path / "source")
    store = Store("build")
    assert build.build(peer, "mpich", None, store)
    found = store.get("toy", "mpich")
    assert found is not None
    assert (found["outcome"], found["why"]) == ("failed", "a.c:1: error: no such type")
    assert found["command"] == "echo 'a.c:1: error: no such type'; false"


def test_what_is_no_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.parse(["--parts", "correct,features"]).parts == ["correct", "features"]
    assert command.parse(["--again", "calls"]).parts == ["calls"]
    assert command.parse(["--again", "--parts", "calls,overhead"]).parts == ["calls", "overhead"]
    with pytest.raises(SystemExit):
        command.parse(["--parts", "corect"])
    assert "corect is none of build, correct" in capsys.readouterr().err


def test_a_command_on_the_page_has_no_folder_of_this_machine() -> None:
    words = [
        "mpirun",
        "-n",
        "2",
        f"{places.INSTALLED}/a/lib.so",
        f"{places.ROOT}/build/app",
        "X=/tmp/peers-ab12/out/p.db",
    ]
    assert runs.shown(words) == "mpirun -n 2 PREFIX/a/lib.so ./build/app X=OUT/p.db"
