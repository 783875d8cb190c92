# SPDX-License-Identifier: Apache-2.0
"""The wrappers, as C++ templates."""

from __future__ import annotations

from policy import MADE, TOOL
from wrapped import Wrapped


def wrapper(w: Wrapped) -> str:
    """Return the C++ template of one wrapper."""
    form = w.form
    head = (
        f"template <Entry entry>\n"
        f"{'COMMLENS_APART ' if w.has_plain else ''}int wrap_{form.name}({form.definition}) {{\n"
        f"  const auto next = next_of(&wrap_{form.name}<entry>, entry, {w.slot});\n"
    )
    if w.policy.tool:
        name = form.name.removeprefix("MPI_T_")
        return head + f"  return tool::{name}({', '.join(filter(None, ['next', form.arguments]))});\n}}\n"
    if w.policy.hand:
        return head + by_hand(w) + "}\n"
    body = [
        f"  Call call({w.op}, COMMLENS_CALLER);",
        *noted(w),
        *nested(w),
        *started(w),
        f"  const int rc = {w.forwarded('call.site()')};",
        "  call.stop();",
        *counted_as_before(w),
        *counted(w),
        *w.aftermath,
        "  return rc;",
    ]
    return head + "\n".join(body) + "\n}\n"


def by_hand(w: Wrapped) -> str:
    """Return the body of a wrapper that calls a function of core/mpi/."""
    volume = ""
    if w.policy.volume:
        volume = f", [&](Volume& volume, const CommView& comm_view) {{ {w.measured()}; }}"
    arguments = ", ".join(filter(None, [w.policy.hand_first, w.form.arguments]))
    return (
        f"  return handwritten::{w.policy.hand}(next, {w.op}, COMMLENS_CALLER{volume}"
        f"{f', {arguments}' if arguments else ''});\n"
    )


def nested(w: Wrapped) -> list[str]:
    """Return the code for a call inside another call, which is not counted but whose new objects are stored."""
    comm = w.communicator
    parent = f"known_comm({comm.name})" if comm else "no_comm()"
    if w.policy.creates:
        made = w.creation(parent, "call.site() & site_mask")
    elif comm is not None:
        made = w.object_of(parent)
    else:
        made = ""
    if not made:
        return [f"  if (call.nested()) return next({w.form.arguments});"]
    return [
        "  if (call.nested()) {",
        f"    const int rc = {w.forwarded('0')};",
        f"    if (rc == MPI_SUCCESS && made_in_callback(call.site())) {made}",
        "    return rc;",
        "  }",
    ]


def partners(w: Wrapped) -> list[str]:
    """Return the statements that store whom a blocking call sends to and receives from."""
    found = [("send_to", w.form.partner("to")), ("receive_from", w.form.partner("from"))]
    lines = [f"  call.{what}({', '.join(of)});" for what, of in found if of is not None]
    return [*lines, f"  call.send_tag({w.sent_tag});"] if w.sent_tag else lines


def started(w: Wrapped) -> list[str]:
    """Return the statements before the forwarded call."""
    lines = []
    if w.status is not None:
        lines.append(f"  StatusFor status_for({w.status.name});")
    message, comm = w.used_message, w.communicator
    if message is not None:
        lines += [
            f"  if ({message.name} == nullptr) return next({w.form.arguments});  // MPI's to complain about",
            # MPI may give the handle to a probe of another thread as soon as the call returns.
            f"  MPI_Message matched = *{message.name};",
            "  const CommView& comm_view = comm_of_message(matched);",
        ]
    elif comm is None:
        # A communicator argument is looked up only after MPI has accepted it.  Windows and files are known.
        lines.append(f"  const CommView& comm_view = {w.owner};")
    if comm is None:
        return [*lines, "  call.start_under(comm_view.index);"]
    lines += [*partners(w), f"  call.start_in({comm.name});"]
    # All calls of v and w forms have one bin, and their arrays may be missing.
    is_collective = w.policy.volume and w.policy.of_class.peers == "collective"
    if is_collective and not w.has_arrays_of_counts:
        lines.append(
            f"  call.compute_bin_ahead({comm.name}, [&](Volume& v, const CommView& c) {{ {w.measured('v', 'c')}; }});"
        )
    return lines


def noted(w: Wrapped) -> list[str]:
    """Return the statement that notes that there is an error handler."""
    return ["  note_error_handler();"] if "_errhandler_function" in w.form.definition else []


def counted_as_before(w: Wrapped) -> list[str]:
    """Return the statements that count a call from the call cache."""
    if w.words is None:
        return []
    arrived = [] if w.status is None else ["status_for.received()", "status_for.source()", "status_for.tag()"]
    lines = [
        "  if (rc == MPI_SUCCESS) {",
        f"    if (CachedCall* const again = call.find_cached({', '.join(w.words)})) {{",
        f"      call.count<{w.parts}>({', '.join(['*again', *arrived])});",
    ]
    if w.request is not None and w.is_operation:
        lines.append(f"      call.remember_operation(*{w.request.name}, *again, {w.flags});")
    elif w.request is not None:
        lines.append(f"      call.remember(*{w.request.name}, *again->cell, {w.flags});")
    return [*lines, "      return rc;", "    }", "  }"]


def counted(w: Wrapped) -> list[str]:
    """Return the statements that count any other call."""
    lines = []
    message, comm = w.used_message, w.communicator
    if message is not None:
        lines.append(
            f"  if (rc != MPI_SUCCESS && *{message.name} == matched) made_message(matched, comm_view);"
        )
    elif comm is not None:
        lines.append(f"  const CommView& comm_view = comm_of({comm.name}, rc, call.freed());")
    volume = "Volume{}"
    if w.policy.volume:
        lines += ["  Volume volume(call.freed());", f"  if (rc == MPI_SUCCESS) {w.measured()};"]
        volume = "volume"
    if w.status is not None:
        bytes_received = "status_for.received()"
        lines.append(
            f"  if (rc == MPI_SUCCESS) volume.arrived({bytes_received}, status_for.source());"
            if w.policy.of_class.peers == "two_sided"
            else f"  if (rc == MPI_SUCCESS) volume.received = {bytes_received};"
        )
    cell = "" if w.words is None else "Cell& cell = "
    if w.is_operation:
        lines.append(
            f"  call.find_operations(comm_view, volume, rc, {'true' if w.is_persistent else 'false'});"
        )
    if w.request is not None:
        lines.append(f"  {cell}call.record_request(comm_view, {volume}, rc, {w.request.name}, {w.flags});")
    else:
        lines.append(f"  {cell}call.record(comm_view, {volume});")
    if w.is_sampled:
        lines.append("  call.count_in_stratum(comm_view, volume, rc);")
    if w.has_unnumbered_receive:
        lines.append("  stop_messages(comm_view.index);  // the message that it receives will have no number")
    if w.peers == "two_sided":
        tag = ", status_for.tag()" if w.status is not None else ""
        lines.append(f"  call.two_sided(comm_view, volume, rc{tag});")
    elif w.peers:
        lines.append(f"  call.{w.peers}(comm_view, volume);")
    if w.words is not None:
        lines.append(f"  call.cache<{w.parts}>(cell, {volume});")
    return lines


def untimed_path(w: Wrapped) -> list[str]:
    """Return the lines for a call that goes untimed: the wrapper ends there."""
    assert w.status is None or w.request is not None, w.form.name
    assert not w.is_sampled and not w.is_operation, w.form.name
    comm = w.communicator
    start = f"untimed_in({w.op}, {comm.name})" if comm is not None else f"untimed_under_comm({w.op})"
    body = [f"call.start_{start};", f"const int rc = next({w.arguments});"]
    if w.request is not None:
        body += [
            "Cell& cell = call.count_untimed(rc);",
            f"if (__builtin_expect(rc == MPI_SUCCESS, 1)) call.remember(*{w.request.name}, cell, {w.flags});",
        ]
    else:
        body.append("call.count_untimed(rc);")
    body.append("return rc;")
    return ["  if (call.goes_untimed()) {", *(f"    {line}" for line in body), "  }"]


def plain_wrapper(w: Wrapped) -> str:
    """Return the C++ template of the wrapper for calls from the call cache."""
    form, comm, request, status = w.form, w.communicator, w.request, w.status
    assert w.words is not None
    body = [
        f"  CachedPath<{w.parts}, by_path> call({w.op}, COMMLENS_CALLER, {', '.join(w.words)});",
        f"  if (!call.is_cached()) return wrap_{form.name}<entry>({form.arguments});",
        f"  const auto next = next_of(&wrap_{form.name}<entry>, entry, {w.slot});",
    ]
    if status is not None and request is None:
        body.append(f"  StatusFor status_for({status.name});")
    body += partners(w)
    if w.policy.untimed:
        body += untimed_path(w)
    body.append(
        f"  call.start_in({w.op}, {comm.name});" if comm is not None else f"  call.start_under_comm({w.op});"
    )
    body.append(f"  const int rc = next({w.arguments});")
    if request is not None:
        remember = "remember_operation" if w.is_operation else "remember"
        body += [
            "  Cell& cell = call.count(rc);",
            f"  if (__builtin_expect(rc == MPI_SUCCESS, 1)) call.{remember}(*{request.name}, cell, {w.flags});",
        ]
    elif w.is_sampled:
        body.append("  return call.count_sampled(rc);")
    else:
        body.append("  call.count(rc, status_for);" if status is not None else "  call.count(rc);")
    if not w.is_sampled:
        body.append("  return rc;")
    head = f"template <Entry entry, bool by_path>\nint plain_{form.name}({form.definition}) {{\n"
    return head + "\n".join(body) + "\n}\n"


def wrap_file(klass: str, exported: list[Wrapped]) -> str:
    """Return the file with the wrappers of one class."""
    headers = (
        ["mpit"]
        if klass == TOOL
        else ["cached_path", "creation", "family_tuning", "handwritten_wrappers", "wrap"]
    )
    includes = "\n".join(f'#include "core/mpi/{header}.h"' for header in headers)
    parts = [
        f"// {MADE}\n// SPDX-License-Identifier: Apache-2.0\n",
        f"{includes}\n\nnamespace commlens {{\nnamespace {{\n",
    ]
    table = []
    for w in exported:
        parts.append(wrapper(w))
        name = w.form.name
        by_mpi = f"&wrap_{name}<Entry::mpi>"
        if w.has_plain:
            parts.append(plain_wrapper(w))
            plain = f"&plain_{name}<Entry::mpi, false>, &plain_{name}<Entry::mpi, true>"
            by_mpi = f"chosen({plain}, {by_mpi})"
        table.append(f"  wrap(wrappers, {w.slot}, {by_mpi}, &wrap_{name}<Entry::pmpi>);")
    parts.append(f"}}  // namespace\n\n[[gnu::cold]] void wrap_{klass}(void* wrappers[]) noexcept {{")
    parts.append("\n".join(table))
    parts.append("}\n\n}  // namespace commlens\n")
    return "\n".join(parts)


def barriers_file(exported: list[Wrapped]) -> str:
    """Return the file with the functions that wait in a barrier before a collective."""
    parts = [
        f"// {MADE}\n// SPDX-License-Identifier: Apache-2.0\n",
        '#include "core/mpi/barriers.h"\n\nnamespace commlens {\nnamespace {\n',
    ]
    table = []
    for w in exported:
        comm = w.communicator
        if not w.is_sampled or comm is None:
            continue
        name = w.form.name
        parts.append(
            f"template <Entry entry>\n"
            f"int with_barrier_{name}({w.form.definition}) {{\n"
            f"  wait_in_barrier({w.op}, {comm.name});\n"
            f"  return behind_barrier(&with_barrier_{name}<entry>, entry, {w.slot})({w.form.arguments});\n}}\n"
        )
        table.append(
            f"  wrap(functions, {w.slot}, &with_barrier_{name}<Entry::mpi>, &with_barrier_{name}<Entry::pmpi>);"
        )
    parts.append("}  // namespace\n\nvoid add_barriers(void* functions[]) noexcept {")
    parts += ["\n".join(table), "}\n\n}  // namespace commlens\n"]
    return "\n".join(parts)
