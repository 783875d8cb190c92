# SPDX-License-Identifier: Apache-2.0
"""Write the variables of MPI libraries that are worth trying from spec/switches.toml.

Out: python/commlens/tune/_switches.py
"""

from __future__ import annotations

import sys
from typing import Any

import output

MADE = "DO NOT EDIT: written by gen/switches.py from spec/switches.toml."
FACTS = {
    "library": str,
    "since": str,
    "before": str,
    "variable": str,
    "environment": str,
    "meaning": str,
    "unit": str,
    "default": str,
    "values": list,
    "when": str,
    "above": int,
    "way": str,
    "operations": list,
    "only": list,
    "assumed": bool,
    "source": str,
}
"""The facts of a switch, in the order of the fields of the class, and their types."""


def fact_text(name: str, value: Any) -> str:
    """Return one fact as Python: versions as pairs of numbers, lists as tuples."""
    if name in ("since", "before"):
        return repr(tuple(map(int, value.split("."))) if value else None)
    return repr(tuple(value) if isinstance(value, list) else value)


def switch_text(facts: dict[str, Any]) -> str:
    """Return one switch as an item of a tuple."""
    wrong = [name for name, kind in FACTS.items() if not isinstance(facts.get(name), kind)]
    wrong += [name for name in facts if name not in FACTS]
    if wrong:
        raise SystemExit(
            f"spec/switches.toml: {facts.get('variable')}: {', '.join(wrong)} is missing or wrong"
        )
    lines = [f"        {name}={fact_text(name, facts[name])}," for name in FACTS]
    return "\n".join(["    Switch(", *lines, "    ),"])


def python_text(spec: dict[str, Any]) -> str:
    """Return python/commlens/tune/_switches.py."""
    switches = "\n".join(map(switch_text, spec["switch"]))
    return f'''# SPDX-License-Identifier: Apache-2.0
# {MADE}
"""Variables of MPI libraries, besides those that choose an algorithm, with large effects on a profile."""

from __future__ import annotations

from typing import NamedTuple


class Switch(NamedTuple):
    """One variable; the head of spec/switches.toml describes its facts."""

    library: str
    since: tuple[int, ...]
    before: tuple[int, ...] | None
    variable: str
    environment: str
    meaning: str
    unit: str
    default: str
    values: tuple[str, ...]
    when: str
    above: int
    way: str
    operations: tuple[str, ...]
    only: tuple[str, ...]
    assumed: bool
    source: str


SWITCHES: tuple[Switch, ...] = (
{switches}
)
'''


def texts() -> dict[str, str]:
    """Return the generated files: path from the root of the repository -> content."""
    return {"python/commlens/tune/_switches.py": python_text(output.read_toml("spec/switches.toml"))}


if __name__ == "__main__":
    sys.exit(output.main(texts()))
