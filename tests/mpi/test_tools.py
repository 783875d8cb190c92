# SPDX-License-Identifier: Apache-2.0
"""Another tool of the profiling interface beside us, wherever it comes in: both see every call once.

The tool is made from the declarations in mpi.h: it counts each MPI_X and calls PMPI_X, as such tools do.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from declarations import declared, parameters
from harness import Mpi
from test_every import calls_in_every_c, check_counts

HEAD = """#include <mpi.h>
#include <stdio.h>
static int rank;
static void tell(void);
"""
# It works in MPI_Finalize, as tools do: makes a communicator and adds up what the ranks saw.
TAIL = """
int MPI_Finalize(void) {
  MPI_Comm comm;
  int mine = 1, all = 0;
  PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  PMPI_Comm_rank(comm, &rank);
  PMPI_Reduce(&mine, &all, 1, MPI_INT, MPI_SUM, 0, comm);
  PMPI_Comm_free(&comm);
  if (rank == 0) printf("tool of %d ranks\\n", all);
  fflush(stdout);
  tell();
  return PMPI_Finalize();
}
"""
NOT_WRAPPED = {"MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Abort", "MPI_Pcontrol"}


def tool(procedures: dict[str, str]) -> str:
    """Return the C source of a tool that counts every procedure and writes the counts to the file tool.RANK."""
    lines = [HEAD]
    names: list[str] = []
    for name, text in procedures.items():
        if name in NOT_WRAPPED or re.match(r"MPI_T_|MPI_\w+_FN$|\w+f08", name):
            continue
        arguments = ", ".join(parameter for _, parameter in parameters(text))
        lines.append(f"static int n{len(names)};")
        lines.append(f"int {name}({text}) {{ ++n{len(names)}; return P{name}({arguments}); }}")
        names.append(name)
    lines.append(
        'static void tell(void) {\n  char file[32];\n  snprintf(file, sizeof file, "tool.%d", rank);'
    )
    lines.append('  FILE* const out = fopen(file, "w");')
    lines += [f'  fprintf(out, "%d {name}\\n", n{i});' for i, name in enumerate(names)]
    lines.append("  fclose(out);\n}")
    return "\n".join(lines) + TAIL


def seen_by_tool(where: Path) -> list[Counter[str]]:
    """Return what the tool counted on each of two ranks."""
    files = [(where / f"tool.{rank}").read_text().splitlines() for rank in (0, 1)]
    return [+Counter({name: int(n) for n, name in map(str.split, lines)}) for lines in files]


@pytest.mark.parametrize("order", ["in front", "behind", "inside"])
def test_both_see_every_call_once(mpi: Mpi, order: str, tmp_path: Path) -> None:
    source = mpi.workdir / "tool.c"
    source.write_text(tool(declared(mpi)))
    flags = ("-w", "-include", "mpi.h")
    alone = mpi.fresh("alone")
    if order == "inside":
        program = mpi.compile("every.c", None, source, flags=flags)
        plain = mpi.run(2, [program], mode="off", cwd=alone, timeout=120)
        result = mpi.run(2, [program], cwd=tmp_path, timeout=120)
    else:
        library = mpi.compile(source, flags=("-w",), shared=True)
        libraries = [library, mpi.library] if order == "in front" else [mpi.library, library]
        program = mpi.compile("every.c", flags=flags)
        plain = mpi.run(2, [program], mode="off", preload=[library], cwd=alone, timeout=120)
        result = mpi.run(2, [program], mode="preload", preload=libraries, cwd=tmp_path, timeout=120)
    assert (plain.rc, "tool of 2 ranks" in plain.lines) == (0, True), plain
    assert (result.rc, result.lines) == (plain.rc, plain.lines), result
    assert len(result.said) == 1, result.said

    called = calls_in_every_c(mpi)
    assert seen_by_tool(tmp_path) == seen_by_tool(alone)
    # The tool also counts what an MPI library calls of itself: MPICH 4.2 does so.
    if mpi.known:
        expected = Counter({name: n for name, n in called.items() if name not in NOT_WRAPPED})
        assert seen_by_tool(tmp_path) == [expected, expected]
    # What the tool does itself is seen by us where it comes in front of us, as documented.
    if order != "behind":
        called += Counter(["MPI_Comm_dup", "MPI_Comm_rank", "MPI_Reduce", "MPI_Comm_free"])
    check_counts(result, called)
