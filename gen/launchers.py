# SPDX-License-Identifier: Apache-2.0
"""Write the facts about launchers and families of MPI libraries from spec/launchers.toml and spec/abi.toml.

Out: generated/launchers.h                  the lists that the library and commlens-run read
     python/commlens/doctor/_launchers.py   the same lists for the reader
"""

from __future__ import annotations

import sys
from typing import Any

import output

MADE = "DO NOT EDIT: written by gen/launchers.py from spec/launchers.toml and spec/abi.toml."


def quoted(names: list[str]) -> str:
    """Return the names as string literals of C."""
    return ", ".join(f'"{name}"' for name in names)


def header_text(spec: dict[str, Any], families: dict[str, Any]) -> str:
    """Return generated/launchers.h."""
    lists = "\n\n".join(
        f"// {facts['doc']}\n#define COMMLENS_VARIABLES_{name.upper()} {{{quoted(facts['names'])}}}"
        for name, facts in spec["variables"].items()
    )
    known = ", \\\n".join(
        f'    {{"{name}", "{facts["title"]}", {{{quoted(facts["libraries"])}, NULL}}}}'
        for name, facts in families.items()
    )
    recognised = ", \\\n".join(
        f'    {{"{variable}", "{rule["family"]}"}}'
        for rule in spec["recognised"]
        for variable in rule["names"]
    )
    most = max(len(facts["libraries"]) for facts in families.values()) + 1
    return f"""// SPDX-License-Identifier: Apache-2.0
// {MADE}
#pragma once

// Lists for C and C++, as initialisers of arrays.
// clang-format off

{lists}

// Name, title, and prefixes of the file names of the libraries of each family; NULL ends them.
enum {{ most_family_libraries = {most}, family_count = {len(families)} }};
#define COMMLENS_FAMILIES {{ \\
{known}}}

// Variables that the launcher of a family sets, and the family.  The first variable that is set decides.
#define COMMLENS_LAUNCHER_VARIABLES {{ \\
{recognised}}}
"""


def python_text(spec: dict[str, Any], families: dict[str, Any]) -> str:
    """Return python/commlens/doctor/_launchers.py."""

    def mapping(fact: str) -> str:
        rows = "".join(f"    {name!r}: {of(facts[fact])!r},\n" for name, facts in families.items())
        return f"{{\n{rows}}}"

    def of(value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    return f'''# SPDX-License-Identifier: Apache-2.0
# {MADE}
"""Families of MPI libraries, and the variables of launchers."""

from __future__ import annotations

TITLES = {mapping("title")}

LIBRARIES: dict[str, tuple[str, ...]] = {mapping("libraries")}

LAUNCHERS: dict[str, tuple[str, ...]] = {mapping("launchers")}

NODE_VARIABLES = {tuple(spec["variables"]["nodes"]["names"])!r}
'''


def texts() -> dict[str, str]:
    """Return the generated files: path from the root of the repository -> content."""
    spec, families = output.read_toml("spec/launchers.toml"), output.read_toml("spec/abi.toml")["family"]
    unknown = {rule["family"] for rule in spec["recognised"]} - set(families)
    if unknown:
        raise SystemExit(f"spec/launchers.toml: unknown family {', '.join(sorted(unknown))}")
    return {
        "generated/launchers.h": header_text(spec, families),
        "python/commlens/doctor/_launchers.py": python_text(spec, families),
    }


if __name__ == "__main__":
    sys.exit(output.main(texts()))
