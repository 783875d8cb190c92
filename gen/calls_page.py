# SPDX-License-Identifier: Apache-2.0
"""The reference page of all procedures."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from policy import MADE, Policy
from standard import Form


def reference(
    forms: dict[str, list[Form]], policy: dict[str, Policy], ops: list[str], spec: dict[str, Any]
) -> str:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name in sorted(policy):
        if policy[name].reason:
            by_reason[policy[name].reason].append(name)
    lines = [
        f"<!-- {MADE} -->",
        "# Every MPI procedure",
        "",
        f"The MPI 5.0 standard has {len(forms)} procedures; with the large-count forms (`_c`), which count under the "
        f"name of the plain form, {sum(len(f) for f in forms.values())} C functions. "
        f"{len(ops)} procedures are measured; the end of this page lists the others with the reason.",
        "",
        "The byte rules are those of [bytes.md](../bytes.md): *rule* names the function of `core/mpi/volume.h` and the "
        "arguments that it uses; `status` means that commlens reads the received bytes from the status. Procedures with "
        "a letter create communicators, whose names begin with that letter.",
        "",
    ]
    for klass in spec["class"]:
        lines += [f"## {klass}", "", "| procedure | `_c` | rule | letter |", "|---|---|---|---|"]
        for name in ops:
            p = policy[name]
            if p.klass != klass:
                continue
            rule = f"`{p.volume}`" if p.volume else ("of the request" if p.of_request else "")
            if p.received:
                rule += f", {p.received}"
            large = "yes" if len(forms[name]) > 1 else ""
            lines.append(f"| `{name}` | {large} | {rule} | {p.creates and f'`{p.creates}`'} |")
        lines.append("")
    lines += ["## Not counted", "", "| reason | procedures |", "|---|---|"]
    uncounted = sorted(name for name in policy if policy[name].apart)
    lines.append(f"| {spec['uncounted']['reason']} | {', '.join(f'`{n}`' for n in uncounted)} |")
    for reason, names in by_reason.items():
        lines.append(f"| {reason} | {', '.join(f'`{n}`' for n in names)} |")
    for block in (spec["removed"], spec["fortran_only"]):
        lines.append(f"| {block['reason']} | {', '.join(f'`{n}`' for n in block['calls'])} |")
    lines.append("")
    return "\n".join(lines)
