# SPDX-License-Identifier: Apache-2.0
"""Write which variables of the environment a profile stores, from spec/settings.toml.

Out: generated/settings.h        the lists that the library compiles in
     docs/reference/settings.md  the same lists for readers
"""

from __future__ import annotations

import sys
from typing import Any

import output

MADE = "DO NOT EDIT: written by gen/settings.py from spec/settings.toml."


def header_text(spec: dict[str, Any]) -> str:
    """Return generated/settings.h."""

    def listed(names: list[str]) -> str:
        return "\n".join(f'    "{name}",' for name in names)

    stored = [name for group in spec["stored"].values() for name in group["names"]]
    return f"""// SPDX-License-Identifier: Apache-2.0
// {MADE}
#pragma once

namespace commlens {{

// Names of variables; one that ends in * stands for all names that begin so.
inline constexpr const char* stored_variables[] = {{
{listed(stored)}
}};
inline constexpr const char* variables_left_out[] = {{
{listed(spec["left_out"]["names"])}
}};

}}  // namespace commlens
"""


def page_text(spec: dict[str, Any]) -> str:
    """Return docs/reference/settings.md."""

    def listed(names: list[str]) -> str:
        return ", ".join(f"`{name}`" for name in names)

    rows = "\n".join(f"| {group['doc']} | {listed(group['names'])} |" for group in spec["stored"].values())
    return f"""<!-- {MADE} -->

# Settings of a run

Table `setting` of a profile has the labels of `COMMLENS_LABEL`, the executable and its build id, the model of the
processor, the variables of the environment below, and control variables of the MPI library. A name that ends in `*`
stands for all names that begin so. Each value has the number of processes that had it, so settings that differ between
ranks are visible.

Control variables are those of Open MPI 4 and 5, read in `MPI_Finalize`, that have a value from a file of parameters such
as `~/.openmpi/mca-params.conf`, or that the application has written through `MPI_T_cvar_write`. Those from the
environment or from `mpirun --mca` are rows of the environment. A profile of a killed job has no control variables. Other
MPI libraries read their control variables from the environment only.

Rows with source `tune` are variables that `COMMLENS_TUNE` set while communicators were created, with the procedure and
the call site.

Values of variables whose names are those of secrets, and passwords in URLs, are replaced by `***`.
`COMMLENS_SETTINGS=labels` stores the labels only.

| what | variables |
|---|---|
{rows}

Left out are variables that launchers set for each process or launch: {listed(spec["left_out"]["names"])}.
"""


def texts() -> dict[str, str]:
    """Return the generated files: path from the root of the repository -> content."""
    spec = output.read_toml("spec/settings.toml")
    return {"generated/settings.h": header_text(spec), "docs/reference/settings.md": page_text(spec)}


if __name__ == "__main__":
    sys.exit(output.main(texts()))
