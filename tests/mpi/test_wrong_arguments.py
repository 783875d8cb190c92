# SPDX-License-Identifier: Apache-2.0
"""Every procedure with every kind of argument MPI may refuse: the answer is that of a run without us.

The program is made from the declarations in mpi.h: all arguments are right but those of one kind.  A call may as well
kill its process, or never return; then it does so under commlens, too.
"""

from __future__ import annotations

import re
from pathlib import Path

from declarations import declared, parameters
from harness import Mpi

HERE = Path(__file__).resolve().parent

# They end the process, wait for another one, or hand over what only a callback can.
LEFT_OUT = re.compile(
    r"MPI_(Init|Init_thread|Finalize|Abort|Comm_(spawn|spawn_multiple|accept|connect|join)|Win_(wait|start|post|complete)"
    r"|(Lookup|Publish|Unpublish)_name|(Open|Close)_port|Pcontrol|T_\w+|Session_\w+|Grequest_\w+|\w+_[cf]2\w+|Status_f08\w*"
    r"|\w*[Pp]robe|Recv|Mrecv|Imrecv|Register_datarep\w*|Buffer_\w+|Free_mem|File_open|Type_create_f90\w*|DUP_FN|\w+_FN)"
)

# Their answer is not always the same: without a topology MPICH reads memory it never set, and copies of a process share
# the position in a file.
UNSTEADY = {"no room": re.compile("eighbor_"), "no buffer": re.compile("eighbor_|_File_")}
NEVER = re.compile(r"(?!)")

RIGHT = {
    "MPI_Comm": "MPI_COMM_SELF",
    "MPI_Datatype": "MPI_INT",
    "MPI_Errhandler": "MPI_ERRORS_RETURN",
    "MPI_File": "file",
    "MPI_Group": "group",
    "MPI_Info": "MPI_INFO_NULL",
    "MPI_Message": "MPI_MESSAGE_NO_PROC",
    "MPI_Op": "MPI_SUM",
    "MPI_Request": "MPI_REQUEST_NULL",
    "MPI_Win": "win",
    "MPI_Aint": "4",
    "MPI_Count": "1",
    "MPI_Offset": "0",
    "MPI_Comm*": "&comm",
    "MPI_Datatype*": "types",
    "MPI_Errhandler*": "&handler",
    "MPI_File*": "&made_file",
    "MPI_Group*": "&made_group",
    "MPI_Info*": "infos",
    "MPI_Message*": "&message",
    "MPI_Op*": "&op",
    "MPI_Request*": "requests",
    "MPI_Status*": "statuses",
    "MPI_Win*": "&made_win",
    "MPI_Aint*": "far",
    "MPI_Count*": "many",
    "MPI_Offset*": "&offset",
    "void*": "buffer",
    "char*": "text",
    "int": "1",
}
_RANKS = {"dest", "source", "root", "target_rank", "rank"}
_COUNT = re.compile(r"count|^n$|^size$|incount|blocklength|ndims|maxdims|max\w+")

# What is wrong in a variant: the types it concerns, and what is given instead; in the last three, integers of certain names.
VARIANTS: dict[str, dict[str, str]] = {
    "no communicator": {"MPI_Comm": "MPI_COMM_NULL"},
    "no datatype": {"MPI_Datatype": "MPI_DATATYPE_NULL"},
    "no operator": {"MPI_Op": "MPI_OP_NULL"},
    "no window": {"MPI_Win": "MPI_WIN_NULL"},
    "no file": {"MPI_File": "MPI_FILE_NULL"},
    "no group": {"MPI_Group": "MPI_GROUP_NULL"},
    "no error handler": {"MPI_Errhandler": "MPI_ERRHANDLER_NULL"},
    "no buffer": {"void*": "NULL"},
    "no room": {kind: "NULL" for kind in (*RIGHT, "int*") if kind.endswith("*") and kind != "void*"},
    "count -1": {},
    "rank 99": {},
    "tag -9": {},
}


def argument(kind: str, name: str, variant: str) -> str | None:
    """Return what stands for a parameter, right or wrong; None for one this test has nothing for."""
    if kind in VARIANTS.get(variant, ()):
        return VARIANTS[variant][kind]
    if kind in ("int", "MPI_Count"):
        if name in _RANKS:
            return "99" if variant == "rank 99" else "0"
        if name.endswith("tag"):
            return "-9" if variant == "tag -9" else "0"
        if variant == "count -1" and _COUNT.search(name):
            return "-1"
    if kind == "int*":
        return "zeros" if "displs" in name or "rank" in name else "ones"
    return RIGHT.get(kind)


def cases(procedures: dict[str, str]) -> dict[str, str]:
    """Return the calls by name: `MPI_Send, no communicator`."""
    made: dict[str, str] = {}
    for name, text in procedures.items():
        if LEFT_OUT.fullmatch(name.removesuffix("_c")):
            continue
        kinds = parameters(text)
        usual = [argument(*parameter, "") for parameter in kinds]
        for variant in VARIANTS:
            if UNSTEADY.get(variant, NEVER).search(name):
                continue
            if name.endswith("_c") and variant not in ("no datatype", "no room"):
                continue  # one wrapper text serves both forms
            arguments = [argument(*parameter, variant) for parameter in kinds]
            if arguments != usual and None not in arguments:
                made[f"{name}, {variant}"] = f"{name}({', '.join(map(str, arguments))})"
    return made


def program(calls: dict[str, str]) -> str:
    """Return the C source."""
    lines = ['#include "wrong_arguments.h"']
    lines += [f"static int call{i}(void) {{ return {text}; }}" for i, text in enumerate(calls.values())]
    lines.append("static char const* const names[] = {" + ", ".join(f'"{name}"' for name in calls) + "};")
    lines.append("static call* const calls[] = {" + ", ".join(f"call{i}" for i in range(len(calls))) + "};")
    lines.append("int main(int argc, char** argv) {")
    lines.append(f"  begin(argc, argv);\n  try_all({len(calls)}, names, calls);\n  end();\n  return 0;\n}}")
    return "\n".join(lines) + "\n"


def test_what_mpi_refuses_it_refuses_under_us(mpi: Mpi) -> None:
    calls = cases(declared(mpi))
    assert len(calls) > 800
    folder = mpi.fresh("wrong")
    source = folder / "wrong.c"
    source.write_text(program(calls))
    binary = mpi.compile(source, None, flags=("-O0", "-w", f"-I{HERE}"))
    env = {"UCX_HANDLE_ERRORS": "none", "OMPI_MCA_opal_signal": "", "UCX_WARN_UNUSED_ENV_VARS": "n"}
    plain, under = mpi.pair(1, [binary], env=env, timeout=240)
    mpi.skip_if_broken(plain)
    assert (plain.rc, len(plain.stdout.splitlines())) == (0, len(calls))
    differ = [
        pair for pair in zip(plain.stdout.splitlines(), under.stdout.splitlines()) if pair[0] != pair[1]
    ]
    assert not differ, differ
    assert (under.rc, under.stdout) == (plain.rc, plain.stdout)
    under.open().check()
