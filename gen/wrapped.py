# SPDX-License-Identifier: Apache-2.0
"""Derives the wrapper of a procedure from its arguments and its policy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from policy import Policy
from standard import Form, Parameter

MOST_WORDS = 5  # CachedCall::most_words


@dataclass(frozen=True)
class Wrapped:
    """One C function to wrap: its form, its policy, and its number among the exported functions."""

    form: Form
    policy: Policy
    slot: int

    @property
    def op(self) -> str:
        """Id under which its calls are counted."""
        return f"op::{self.form.plain}" if self.policy.counted else "op::unknown"

    @property
    def communicator(self) -> Parameter | None:
        return self.form.communicator

    @property
    def request(self) -> Parameter | None:
        """The request that it returns."""
        return self.form.first("REQUEST", pointer=True)

    @property
    def status(self) -> Parameter | None:
        """The status from which the bytes received are read."""
        return self.form.first("STATUS", pointer=True) if self.policy.received == "status" else None

    @property
    def used_message(self) -> Parameter | None:
        """The matched message that it receives."""
        return self.form.first("MESSAGE", pointer=True) if self.policy.message == "used" else None

    @property
    def is_persistent(self) -> bool:
        """Whether it creates a persistent request."""
        return self.policy.persistent and self.request is not None

    @property
    def peers(self) -> str:
        """How its peers are counted; the peers of a persistent request count when it is started."""
        return self.policy.of_class.peers if self.policy.volume and not self.is_persistent else ""

    @property
    def sent_tag(self) -> str:
        """The tag of a message that a call sends without waiting for it; empty if there is none."""
        if (
            self.policy.of_class.peers != "two_sided"
            or self.form.partner("to")
            or self.form.named("dest") is None
        ):
            return ""
        is_partitioned = self.form.named("partitions") is not None
        tags = ("sendtag", "tag")
        return "" if is_partitioned else next(name for name in tags if self.form.named(name))

    @property
    def has_unnumbered_receive(self) -> bool:
        """Whether it returns a request that receives a message whose status does not tell the sender."""
        is_request = self.policy.of_class.peers == "two_sided" and self.request is not None
        return is_request and self.form.named("dest") is not None and self.form.named("source") is not None

    @property
    def is_sampled(self) -> bool:
        """Whether its calls are sampled, to split their time into waiting and operation."""
        return self.policy.of_rule.waits != "none" and self.request is None

    @property
    def is_operation(self) -> bool:
        """Whether it begins, or prepares, a collective that is sampled when it is complete."""
        return self.policy.of_rule.waits != "none" and self.request is not None

    @property
    def has_arrays_of_counts(self) -> bool:
        """Whether the blocks of a collective are of different sizes."""
        return any(p.array and p.name.endswith("counts") for p in self.form.parameters)

    @property
    def flags(self) -> str:
        """Facts stored about the request that it creates."""
        flags = ["persistent" if self.is_persistent else "active"]
        if self.policy.received == "status":
            has_sender = self.policy.of_class.peers == "two_sided"
            flags += ["receives", "message"] if has_sender else ["receives"]
        return " | ".join(f"RequestFlag::{f}" for f in flags)

    @property
    def arguments(self) -> str:
        """The arguments of the call that is forwarded."""
        return ", ".join("status_for.get()" if p is self.status else p.name for p in self.form.parameters)

    def forwarded(self, site: str) -> str:
        """Return the call of the MPI library, with the variables that COMMLENS_TUNE sets around a creation."""
        comm = self.communicator
        if not self.policy.tuned or comm is None:
            inside = self.policy.creates and site == "0"
            return (
                f"create_inside([&] {{ return next({self.arguments}); }})"
                if inside
                else f"next({self.arguments})"
            )
        return f"create_tuned({self.op}, {comm.name}, {site}, [&] {{ return next({self.arguments}); }})"

    @property
    def owner(self) -> str:
        """Expression for the communicator of a call that has no communicator argument."""
        for kind, what in (("WINDOW", "win"), ("FILE", "file")):
            found = self.form.first(kind, pointer=False)
            if found is not None:
                return f"comm_of_{what}({found.name})"
        return "no_comm()"

    def measured(self, volume: str = "volume", view: str = "comm_view") -> str:
        """Return the call of the byte rule."""
        rule, arguments = self.policy.rule
        return f"{volume}.{rule}({', '.join(filter(None, [view, arguments]))})"

    # ---- new objects ----

    def creation(self, parent: str, site: str) -> str:
        """Return the statement that registers the new communicator."""
        new = next(p for p in self.form.parameters if p.kind == "COMMUNICATOR" and p.pointer)
        identity = self.policy.identity or "parent()"
        return f"created({self.op}, {parent}, *{new.name}, identity::{identity}, {site});"

    def object_of(self, comm: str) -> str:
        """Return the statement that stores the communicator of a new window or file.

        Empty if the procedure creates none.
        """
        for kind, what in (("WINDOW", "window"), ("FILE", "file")):
            made = self.form.first(kind, pointer=True)
            if made is not None:
                return f"made_{what}(*{made.name}, {comm});"
        return ""

    @cached_property
    def aftermath(self) -> list[str]:
        """Statements after a successful call, which store new objects."""
        lines = []
        if self.policy.creates:
            lines.append(f"  if (rc == MPI_SUCCESS) {self.creation('comm_view', 'call.site()')}")
        made = self.object_of("comm_view")
        if made:
            lines.append(f"  if (rc == MPI_SUCCESS) {made}")
        datatype = self.form.first("DATATYPE", pointer=True)
        if self.policy.datatype and datatype is not None:
            lines.append(f"  if (rc == MPI_SUCCESS) datatype_made(*{datatype.name});")
        message = self.form.first("MESSAGE", pointer=True)
        if self.policy.message == "made" and message is not None:
            flag = self.form.named("flag")
            matched = f" && *{flag.name}" if flag is not None else ""
            lines.append(f"  if (rc == MPI_SUCCESS{matched}) made_message(*{message.name}, comm_view);")
        return lines

    # ---- the call cache ----

    @cached_property
    def words(self) -> list[str] | None:
        """The arguments on which the counting of a call depends, without its status; None if such calls cannot be cached."""
        form, policy = self.form, self.policy
        subject = (
            form.communicator or form.first("WINDOW", pointer=False) or form.first("FILE", pointer=False)
        )
        if subject is None or not policy.of_class.cacheable or self.is_persistent:
            return None
        if form.first("MESSAGE", pointer=True) is not None or self.aftermath:
            return None
        words = []
        small = []  # arguments of 32 bits: two fit into a word
        for name in filter(None, re.split(r"[,\s]+", policy.rule[1])):
            parameter = form.named(name)
            assert parameter is not None, (form.name, name)
            if parameter.array:
                return None
            if parameter.kind == "BUFFER":
                small.append(f"in_place({name})")
            elif parameter.kind == "RANK":
                small.append(name)
            else:
                words.append(name)
        words += small if len(small) < 2 else [f"pair({', '.join(small)})"]
        if len(words) > MOST_WORDS:
            return None
        return [f"bits({subject.name})", *(f"word({w})" for w in words)]

    @property
    def parts(self) -> str:
        """Counters beside the call itself that its calls may need, as CachedCall::Parts."""
        parts = list(self.policy.of_rule.parts)
        if self.status is not None and self.request is None:
            has_sender = self.policy.of_class.peers == "two_sided"
            arrived = ["receives", "in_message"] if has_sender else ["receives"]
            parts += [part for part in arrived if part not in parts]
        if self.is_sampled:
            parts.append("sampled")
        if self.is_operation:
            parts.append("operation")
        if self.policy.of_class.peers == "two_sided" and {"out_message", "in_message"} & set(parts):
            parts.append("messages")
        if self.policy.untimed:
            parts.append("may_skip")
            if self.request is not None and self.policy.received == "status":
                parts.append("posts")
        return " | ".join(f"CachedCall::{p}" for p in parts) or "CachedCall::nothing"

    @property
    def has_plain(self) -> bool:
        """Whether it has a second wrapper, for calls from the call cache."""
        policy = self.policy
        if policy.hand or policy.tool or not policy.wrapped or not policy.counted:
            return False
        return self.form.name == self.form.plain and self.words is not None
