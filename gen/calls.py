# SPDX-License-Identifier: Apache-2.0
"""Write the wrappers of all MPI procedures.

In:  the MPI 5.0 procedure list (package pympistandard) and our policy (spec/calls.toml).
Out: generated/procedures.h     ids, names and classes of the procedures
     generated/entries.inc      one line per exported name, for core/mpi/entry.S and core/mpi/bind.cpp
     generated/recent.inc       the names that are not in MPI 3.1
     generated/fortran.inc      one line per exported Fortran name, for the same files
     generated/standard.h       every procedure, and why it is not counted, for core/process/coverage.cpp
     generated/wrap_<class>.cpp the wrappers
     generated/barriers.cpp     functions that put a barrier before a call, for COMMLENS_WAITING=barrier
     python/commlens/tune/_tuned.py  the procedures that COMMLENS_TUNE knows
     docs/reference/calls.md    the treatment of each procedure

A gap, a duplicate or an unknown name in spec/calls.toml ends the run with one line that names the change to make.
"""

from __future__ import annotations

import sys

import calls_page
import lists
import output
from policy import TOOL, SpecError, read_policy, reasons
from standard import standard_forms
from wrapped import Wrapped
from wrappers import barriers_file, wrap_file


def texts() -> dict[str, str]:
    """Return the generated files: path from the root of the repository -> content."""
    forms = standard_forms()
    spec = output.read_toml("spec/calls.toml")
    policy = read_policy(spec, set(forms))
    wrapped = sorted(n for n in forms if policy[n].wrapped)
    ops = [n for n in wrapped if policy[n].counted]
    exported: list[Wrapped] = []
    for name in wrapped:
        for form in forms[name]:
            exported.append(Wrapped(form, policy[name], len(exported)))
    result = {
        "generated/procedures.h": lists.procedures(ops, policy, forms, spec["predefined"], len(exported)),
        "generated/entries.inc": lists.entries([w.form for w in exported]),
        "generated/recent.inc": lists.recent(spec["recent"]["calls"]),
        "generated/fortran.inc": lists.fortran_entries(ops, forms),
        "generated/standard.h": lists.standard(reasons(policy, spec), spec["uncounted"]["reason"]),
        "python/commlens/tune/_tuned.py": lists.tuned(policy),
        "docs/reference/calls.md": calls_page.reference(forms, policy, ops, spec),
    }
    for klass in (*spec["class"], TOOL):
        of_class = [w for w in exported if w.policy.klass == klass]
        result[f"generated/wrap_{klass}.cpp"] = wrap_file(klass, of_class)
    result["generated/barriers.cpp"] = barriers_file(exported)
    return result


if __name__ == "__main__":
    try:
        sys.exit(output.main(texts()))
    except SpecError as error:
        sys.exit(f"spec/calls.toml: {error}")
