# SPDX-License-Identifier: Apache-2.0
"""Write python/commlens/reports/_bindings.py from spec/bindings.toml."""

from __future__ import annotations

import sys

import output


def texts() -> dict[str, str]:
    """Return the generated files: path from the root of the repository -> content."""
    cxx = output.read_toml("spec/bindings.toml")["cxx"]
    names = "".join(f"        {name!r},\n" for name in cxx["procedures"])
    return {
        "python/commlens/reports/_bindings.py": f'''# SPDX-License-Identifier: Apache-2.0
# DO NOT EDIT: written by gen/bindings.py from spec/bindings.toml.
"""The C procedures that language bindings in mpi.h call."""

from __future__ import annotations

CXX_TITLE = {cxx["title"]!r}

CXX = frozenset(
    (
{names}    )
)
'''
    }


if __name__ == "__main__":
    sys.exit(output.main(texts()))
