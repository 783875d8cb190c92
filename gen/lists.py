# SPDX-License-Identifier: Apache-2.0
"""The lists of procedures that the library compiles in."""

from __future__ import annotations

import json

from policy import MADE, Policy
from standard import Form


def entries(exported: list[Form]) -> str:
    lines = [f"/* {MADE} */"]
    lines += [f"ENTRY({form.name}, {slot})" for slot, form in enumerate(exported)]
    return "\n".join(lines) + "\n"


def recent(names: list[str]) -> str:
    return "\n".join([f"// {MADE}", *(f"RECENT({name})" for name in sorted(names)), ""])


def fortran_entries(ops: list[str], forms: dict[str, list[Form]]) -> str:
    """Return one line per Fortran name, in lower and upper case: its number, and the id of the procedure."""
    names = [(n, op) for op, n in enumerate(ops, 1) if forms[n][0].fortran]
    lines = [f"/* {MADE} */", f"#define FORTRAN_NAMES {len(names)}"]
    lines += [f"FORTRAN({name.lower()}, {name.upper()}, {i}, {op})" for i, (name, op) in enumerate(names)]
    return "\n".join(lines) + "\n"


def partners_of(form: Form) -> str:
    """Return which partners a call stores, as a value of enum Partners."""
    has = [side for side in ("to", "from") if form.partner(side)]
    return "both" if len(has) == 2 else "".join(has) or "none"


def op_row(name: str, policy: Policy, form: Form) -> str:
    """Return the line of op_facts."""
    return (
        f'    {{"{name}", "{policy.klass}", \'{policy.creates or "-"}\', '
        f"Reach::{policy.of_rule.reach}, Partners::{partners_of(form)}, Waits::{policy.of_rule.waits}, {str(policy.tuned).lower()}}},"
    )


ENUMS = """\
// The receivers of a collective's data.  all: equal blocks for all other ranks; later: for the ranks above; apart: a
// separate block for each rank.
enum class Reach : std::uint8_t { none, all, later, apart };

// The partners of a blocking point-to-point call (CurrentCall): a call that waits, waits for them.
enum class Partners : std::uint8_t { none, to, from, both };

// Whom a process waits for in a collective, or in the call that completes it.  last: all wait until the last has
// entered; root: the others wait for the root; others: the root waits for the others; lower: a process waits for those
// of lower rank; sources: for the neighbours that send to it.
enum class Waits : std::uint8_t { none, last, root, others, lower, sources };
"""


def procedures(
    ops: list[str],
    policy: dict[str, Policy],
    forms: dict[str, list[Form]],
    predefined: dict[str, str],
    slots: int,
) -> str:
    enum = "\n".join(f"  {name} = {i}," for i, name in enumerate(ops, 1))
    rows = "\n".join(op_row(name, policy[name], forms[name][0]) for name in ops)
    letters = "\n".join(
        f"inline constexpr char letter_{name.replace('MPI_COMM_', '').lower()} = '{letter}';"
        for name, letter in predefined.items()
    )
    return f"""// {MADE}
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace commlens {{

// Number of exported procedures, large-count forms included; each has two entries, MPI_ and PMPI_.
inline constexpr int slot_count = {slots};

// The id of a procedure in a profile (table op).  0 is "unknown".
namespace op {{
enum Op : std::uint32_t {{
  unknown = 0,
{enum}
}};
}}  // namespace op
using op::Op;

{ENUMS}
struct OpFacts {{
  const char* name;
  const char* klass;
  char letter;  // of the communicators it creates; '-' for none
  Reach reach;
  Partners partners;
  Waits waits;
  bool tuned;  // COMMLENS_TUNE may set variables during it
}};

inline constexpr OpFacts op_facts[] = {{
    {{"unknown", "other", '-', Reach::none, Partners::none, Waits::none, false}},
{rows}
}};

// Letters of communicators that no procedure makes.
{letters}

}}  // namespace commlens
"""


def standard(why: dict[str, str], uncounted: str) -> str:
    # One lookup serves MPI_Comm_split and mpi_comm_split_: the names are sorted in lower case.
    texts = ["", uncounted, *sorted(set(why.values()) - {"", uncounted})]
    listed = "\n".join(f"    {json.dumps(text)}," for text in texts)
    rows = "\n".join(f'    {{"{name}", {texts.index(why[name])}}},' for name in sorted(why, key=str.lower))
    return f"""// {MADE}
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace commlens {{

// The reason why the calls of a procedure are not counted, as an index into standard_reasons.
inline constexpr int reason_none = 0;   // they are counted
inline constexpr int reason_apart = 1;  // they begin or end the measurement
inline constexpr const char* standard_reasons[] = {{
{listed}
}};

struct StandardProcedure {{
  const char* name;
  int reason;  // index into standard_reasons
}};

// All procedures of the MPI 5.0 standard, those removed from it and those of Fortran alone; by name in lower case.
inline constexpr StandardProcedure standard_procedures[] = {{
{rows}
}};

}}  // namespace commlens
"""


def tuned(policy: dict[str, Policy]) -> str:
    """Return the module with the procedures that COMMLENS_TUNE knows."""
    rows = "\n".join(f'        "{name}",' for name in sorted(policy) if policy[name].tuned)
    return f'''# SPDX-License-Identifier: Apache-2.0
# {MADE}
"""The procedures for whose communicators COMMLENS_TUNE may set variables."""

from __future__ import annotations

TUNED = frozenset(
    {{
{rows}
    }}
)
'''
