# SPDX-License-Identifier: Apache-2.0
"""Compares spec/abi.toml with the mpi.h of the MPI libraries."""

from __future__ import annotations

import re
import sys

from declarations import preprocessed
from harness import ROOT, Mpi

sys.path.insert(0, str(ROOT / "gen"))
import abi
import output

SPEC = output.read_toml("spec/abi.toml")
# Handles and statuses are often converted by macros.  The others differ in a const, or in what a pointer that we only
# pass on points to.
DIFFERENT = re.compile(
    r"_(c2f|f2c|f2f08|f082f|c2f08|f082c|toint|fromint)$|"
    r"^MPI_(Info_create_env|Pready_list|Request_get_status_(all|any|some)|Status_get_(error|source|tag))$"
)


def compile_with_their_header(mpi: Mpi, lines: list[str]) -> None:
    source = mpi.fresh("abi") / "check.c"
    include = "#include <mpi.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <wchar.h>\n"
    source.write_text(include + "\n".join(lines) + "\nint main(void) { return 0; }\n")
    mpi.compile(source, flags=["-std=gnu11", "-Wno-deprecated-declarations"])


def equal(what: str, expected: str) -> str:
    return f'_Static_assert(({what}) == ({expected}), "{what}");'


def test_procedures_are_declared_alike(mpi: Mpi) -> None:
    """The compiler refuses a declaration that contradicts the one before it."""
    theirs = set(re.findall(r"\bP(MPI_\w+)\s*\(", preprocessed(mpi)))
    ours = {name: text for name, text in abi.prototypes().items() if not DIFFERENT.search(name)}
    assert len(ours.keys() & theirs) > 350
    compile_with_their_header(mpi, [text for name, text in ours.items() if name in theirs])


def test_types(mpi: Mpi) -> None:
    family = SPEC["family"][mpi.family]
    handles = list(SPEC["family"]["abi"]["pointers"])
    if "MPI_Session;" not in preprocessed(mpi):
        assert mpi.name == "openmpi", "every other library has sessions"
        handles.remove("Session")
    lines = [equal(f"sizeof(MPI_{name})", "8" if name in family["pointers"] else "4") for name in handles]
    lines += [equal(f"sizeof(MPI_{name})", "8") for name in ("Aint", "Count", "Offset")]
    lines.append(f"struct ours {{ {'; '.join(family['status'])}; }};")
    lines.append(equal("sizeof(MPI_Status)", "sizeof(struct ours)"))
    for member in family["status"]:
        name = re.search(r"(\w+)(\[\d+\])?$", member)
        assert name is not None
        # The standard keeps the names of the others to itself, and libraries choose different ones.
        if name[1].isupper() or mpi.family != "abi":
            lines.append(equal(f"offsetof(MPI_Status, {name[1]})", f"offsetof(struct ours, {name[1]})"))
    compile_with_their_header(mpi, lines)


def test_constants(mpi: Mpi) -> None:
    column = list(SPEC["family"]).index(mpi.family)
    lines = [equal(name, str(values[column])) for name, values in SPEC["integers"].items()]
    lines += [
        f"int check_{name}(void) {{ return {name} == ({of}){values[column]}L ? 1 : commlens_differs(); }}"
        for name, (of, *values) in SPEC["addresses"].items()
    ]
    if mpi.family != "openmpi":
        lines += [
            f"int check_{name}(void) {{ return {name} == ({abi.handle_type(name)}){values[column - 1]:#x}"
            " ? 1 : commlens_differs(); }"
            for name, values in SPEC["handles"].items()
            if column <= len(values)
        ]
    # Undefined: were one different, the compiler would leave the call, and the linker would name it.
    compile_with_their_header(mpi, ["int commlens_differs(void);", *lines])
