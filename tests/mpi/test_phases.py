# SPDX-License-Identifier: Apache-2.0
"""What docs/guide/online.md shows for the users of pml_monitoring_flush: the program, the commands, and known traffic."""

from __future__ import annotations

import re
import shlex

from harness import BUILD, ROOT, Mpi, commlens
from profile_rows import Profile

GUIDE = (ROOT / "docs" / "guide" / "online.md").read_text(encoding="utf-8")
PHASES = GUIDE[GUIDE.index("## Phases") :]
SNIPPETS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PHASES, re.MULTILINE | re.DOTALL))
RANKS = 4
MESSAGES, BYTES = {1: 3, 2: 5}, {1: 400, 2: 4000}


def test_the_phases_of_a_program_are_files_of_their_own(mpi: Mpi) -> None:
    folder = mpi.fresh("phases")
    (folder / "phases.c").write_text(SNIPPETS["c"])
    api = BUILD / "lib"
    libs = (f"-L{api}", "-lcommlens-api", f"-Wl,-rpath,{api}")
    program = mpi.compile(folder / "phases.c", None, *libs, flags=(f"-I{ROOT}/include",))
    assert mpi.run(RANKS, [program], cwd=folder).rc == 0
    for phase, messages in MESSAGES.items():
        for line in SNIPPETS["sh"].replace("phase_1", f"phase_{phase}").splitlines():
            name, *arguments = shlex.split(line)
            assert name == "commlens"
            done = commlens(*arguments, cwd=folder)
            assert done.returncode == 0, done
        expected = {(rank, (rank + 1) % RANKS): (messages * BYTES[phase], messages) for rank in range(RANKS)}
        lines = (folder / f"phase_{phase}.prof").read_text().splitlines()
        found = [line.split("\t") for line in lines if line.startswith("E")]
        assert {
            (int(w[1]), int(w[2])): (int(w[3].split()[0]), int(w[4].split()[0])) for w in found
        } == expected
        profile = Profile(folder / f"phase_{phase}.db")
        assert profile.calls("MPI_Sendrecv") == {"W0.0": dict.fromkeys(range(RANKS), messages)}
