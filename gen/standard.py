# SPDX-License-Identifier: Apache-2.0
"""The procedures of the MPI 5.0 standard, as package pympistandard lists them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pympistandard


@dataclass(frozen=True)
class Parameter:
    """One C parameter: `text` as declared, `kind` and `out` from the standard."""

    name: str
    text: str
    kind: str
    pointer: bool
    out: bool

    @property
    def array(self) -> bool:
        return "[" in self.text


@dataclass(frozen=True)
class Form:
    """One C function: a procedure in its plain or its large-count (_c) form."""

    name: str
    plain: str
    parameters: tuple[Parameter, ...]
    fortran: bool = False  # the procedure has a Fortran binding

    @property
    def declaration(self) -> str:
        return ", ".join(p.text for p in self.parameters)

    @property
    def definition(self) -> str:
        """The parameters of a wrapper.  Variable arguments (MPI_Pcontrol) become one, because no tool reads more."""
        return self.declaration.replace(r"\ldots", "const void* varargs")

    @property
    def arguments(self) -> str:
        return ", ".join(p.name for p in self.parameters)

    @property
    def communicator(self) -> Parameter | None:
        """The communicator argument of the procedure."""
        of = (p for p in self.parameters if p.kind == "COMMUNICATOR" and not p.pointer and not p.array)
        return next(of, None)

    def first(self, kind: str, *, pointer: bool) -> Parameter | None:
        for p in self.parameters:
            if p.kind == kind and p.pointer == pointer:
                return p
        return None

    def partner(self, side: str) -> tuple[str, str] | None:
        """Return the arguments with the rank and the tag of the receiver ("to") or the sender ("from") of a message.

        None if it has no such arguments, or if it does not wait: it returns a request or a flag.
        """
        if any(p.out and p.kind in ("REQUEST", "LOGICAL") for p in self.parameters):
            return None
        rank, *tags = ("dest", "sendtag", "tag") if side == "to" else ("source", "recvtag", "tag")
        tag = next((name for name in tags if self.named(name)), None)
        return (rank, tag) if self.named(rank) and tag is not None and self.communicator is not None else None

    def named(self, name: str) -> Parameter | None:
        return next((p for p in self.parameters if p.name == name), None)


def standard_forms() -> dict[str, list[Form]]:
    """Return the C forms of every procedure of the standard, by the plain name."""
    pympistandard.use_api_version()
    forms: dict[str, list[Form]] = {}
    for procedure in pympistandard.all_iso_c_procedures():
        plain = procedure.express.iso_c
        bindings = [plain]
        if procedure.has_embiggenment():
            bindings.append(procedure.express.embiggen.iso_c)
        # A few procedures exist only with large counts: their plain binding already has the large arguments.
        fortran = procedure._parseset["attributes"]["f90_expressible"]
        forms[plain.name] = [
            Form(b.name, plain.name, tuple(parameter(p) for p in b.parameters), fortran) for b in bindings
        ]
    return forms


def parameter(p: Any) -> Parameter:
    facts = p._parseset
    text = re.sub(r"\s+", " ", str(p)).strip()
    is_array = "[" in text
    return Parameter(
        name=p.name,
        text=text,
        kind=facts["kind"],
        pointer="*" in text and not is_array,
        out=facts["param_direction"] in ("out", "inout"),
    )
