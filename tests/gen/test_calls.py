# SPDX-License-Identifier: Apache-2.0
"""gen/calls.py and gen/policy.py: nothing is missing by silence, nothing is counted twice."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import output
from policy import Policy, SpecError, read_policy
from standard import Form
from wrapped import MOST_WORDS, Wrapped
from wrappers import wrapper

ROOT = output.ROOT
COMPILERS = [name for name in ("mpicc.openmpi", "mpicc.mpich", "mpicc") if shutil.which(name)]


def block_of(spec: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the [[measure]] block that lists `name`."""
    return next(block for block in spec["measure"] if name in block["calls"])


def test_the_specification_names_every_procedure_of_the_standard(
    forms: dict[str, list[Form]], policy: dict[str, Policy]
) -> None:
    assert set(policy) == set(forms)
    assert len(forms) > 400


@pytest.mark.parametrize("name", ["MPI_Send", "MPI_Comm_split", "MPI_Type_commit", "MPI_Init"])
def test_a_gap_is_refused(spec: dict[str, Any], forms: dict[str, list[Form]], name: str) -> None:
    block_of(spec, name)["calls"].remove(name)
    with pytest.raises(SpecError, match=f"no rule for {name}:"):
        read_policy(spec, set(forms))


def test_a_procedure_that_comes_with_a_new_standard_is_a_gap(
    spec: dict[str, Any], forms: dict[str, list[Form]]
) -> None:
    with pytest.raises(SpecError, match="no rule for MPI_Brand_new:"):
        read_policy(spec, {*forms, "MPI_Brand_new"})


def test_a_duplicate_in_a_list_is_refused(spec: dict[str, Any], forms: dict[str, list[Form]]) -> None:
    block_of(spec, "MPI_Send")["calls"].append("MPI_Send")
    with pytest.raises(SpecError, match="MPI_Send is listed twice"):
        read_policy(spec, set(forms))


def test_a_duplicate_in_another_list_is_refused(spec: dict[str, Any], forms: dict[str, list[Form]]) -> None:
    block_of(spec, "MPI_Send")["calls"].append("MPI_Barrier")
    with pytest.raises(SpecError, match="MPI_Barrier is listed twice"):
        read_policy(spec, set(forms))


def test_what_is_measured_is_not_skipped_as_well(spec: dict[str, Any], forms: dict[str, list[Form]]) -> None:
    spec["skip"].append({"reason": "twice", "calls": ["MPI_Send"]})
    with pytest.raises(SpecError, match="MPI_Send is listed twice"):
        read_policy(spec, set(forms))


def test_a_prefix_that_takes_what_is_listed_is_refused(
    spec: dict[str, Any], forms: dict[str, list[Form]]
) -> None:
    spec["skip"].append({"reason": "twice", "prefix": "MPI_Send"})
    with pytest.raises(SpecError, match=r"MPI_Send.* is listed twice"):
        read_policy(spec, set(forms))


@pytest.mark.parametrize("where", ["measure", "skip"])
def test_an_unknown_procedure_is_refused(
    spec: dict[str, Any], forms: dict[str, list[Form]], where: str
) -> None:
    next(block for block in spec[where] if "calls" in block)["calls"].append("MPI_Sned")
    with pytest.raises(SpecError, match="MPI_Sned is not a procedure"):
        read_policy(spec, set(forms))


def test_an_unknown_class_is_refused(spec: dict[str, Any], forms: dict[str, list[Form]]) -> None:
    block_of(spec, "MPI_Barrier")["class"] = "collectives"
    with pytest.raises(SpecError, match="class 'collectives' of MPI_Barrier"):
        read_policy(spec, set(forms))


def test_an_unknown_key_is_refused(spec: dict[str, Any], forms: dict[str, list[Form]]) -> None:
    block_of(spec, "MPI_Barrier")["volumes"] = "none"
    with pytest.raises(SpecError, match=r"unknown key \['volumes'\] beside MPI_Barrier"):
        read_policy(spec, set(forms))


@pytest.mark.parametrize(
    ("key", "value"), [("received", "size"), ("message", "probed"), ("datatype", "committed")]
)
def test_a_value_that_has_no_meaning_is_refused(
    spec: dict[str, Any], forms: dict[str, list[Form]], key: str, value: str
) -> None:
    block_of(spec, "MPI_Mprobe")[key] = value
    with pytest.raises(SpecError, match=f"{key} of MPI_Mprobe: {value} is not one of"):
        read_policy(spec, set(forms))


@pytest.mark.parametrize(
    ("table", "name", "facts", "said"),
    [
        ("class", "p2p", {"peers": "three_sided"}, "peers of class 'p2p': three_sided is not one of"),
        ("class", "p2p", {"peer": "two_sided"}, r"unknown key \['peer'\] beside class 'p2p'"),
        ("rule", "send", {"parts": ["sent"]}, "parts of rule 'send': sent is not one of"),
        ("rule", "bcast", {"parts": [], "reach": "some"}, "reach of rule 'bcast': some is not one of"),
        ("rule", "bcast", {"parts": []}, "rule 'bcast' of MPI_Bcast: collectives have a reach"),
        ("rule", "send", {"parts": [], "reach": "all"}, "rule 'send' of MPI_Send: collectives have a reach"),
        ("rule", "sned", {"parts": []}, "no procedure has rule sned"),
    ],
)
def test_a_class_or_rule_that_makes_no_sense_is_refused(
    spec: dict[str, Any],
    forms: dict[str, list[Form]],
    table: str,
    name: str,
    facts: dict[str, Any],
    said: str,
) -> None:
    spec[table][name] = facts
    with pytest.raises(SpecError, match=said):
        read_policy(spec, set(forms))


def test_a_rule_that_is_not_declared_is_refused(spec: dict[str, Any], forms: dict[str, list[Form]]) -> None:
    del spec["rule"]["bcast"]
    with pytest.raises(SpecError, match="rule 'bcast' of MPI_Bcast is not in"):
        read_policy(spec, set(forms))


def test_the_cache_has_room_for_as_many_words_as_wrappers_give_it() -> None:
    assert f"most_words = {MOST_WORDS};" in (ROOT / "core/hot/cached_call.h").read_text()


def test_what_takes_or_makes_a_matched_message_says_so(
    forms: dict[str, list[Form]], policy: dict[str, Policy]
) -> None:
    """But for the conversions of handles."""
    has_message = {
        name
        for name, of in forms.items()
        if of[0].first("MESSAGE", pointer=True) is not None and policy[name].wrapped
    }
    assert has_message == {name for name, entry in policy.items() if entry.message}


@pytest.mark.parametrize("letter", ["s", "W", "S", "u"])
def test_a_letter_that_is_taken_is_refused(
    spec: dict[str, Any], forms: dict[str, list[Form]], letter: str
) -> None:
    block_of(spec, "MPI_Comm_create")["creates"] = letter
    with pytest.raises(SpecError, match=f"letter '{letter}' of .* is taken by"):
        read_policy(spec, set(forms))


def test_a_letter_two_procedures_of_one_list_would_share_is_refused(
    spec: dict[str, Any], forms: dict[str, list[Form]]
) -> None:
    block_of(spec, "MPI_Comm_create")["calls"].append("MPI_Comm_set_info")
    block_of(spec, "MPI_Comm_get_info")["calls"].remove("MPI_Comm_set_info")
    with pytest.raises(SpecError, match="letter 'c' of MPI_Comm_set_info is taken by MPI_Comm_create"):
        read_policy(spec, set(forms))


def test_a_procedure_of_the_standard_is_not_removed(
    spec: dict[str, Any], forms: dict[str, list[Form]]
) -> None:
    spec["removed"]["calls"].append("MPI_Send")
    with pytest.raises(SpecError, match="MPI_Send are in the standard"):
        read_policy(spec, set(forms))


def test_what_makes_a_communicator_has_a_letter(
    forms: dict[str, list[Form]], policy: dict[str, Policy]
) -> None:
    """Every procedure that gives back an MPI_Comm is a creation, but for the conversions of handles."""
    conversions = {"MPI_Comm_f2c", "MPI_Comm_fromint"}
    frees = {"MPI_Comm_free", "MPI_Comm_disconnect"}
    gives = {
        name
        for name, of in forms.items()
        for p in of[0].parameters
        if p.kind == "COMMUNICATOR" and p.pointer and p.out
    }
    assert gives - conversions - frees == {name for name, entry in policy.items() if entry.creates}


def test_what_makes_a_request_is_followed_or_works_on_one(
    forms: dict[str, list[Form]], policy: dict[str, Policy]
) -> None:
    """No request comes from a procedure whose wrapper does not see it."""
    for name, of in forms.items():
        gives = of[0].first("REQUEST", pointer=True)
        if gives is None or policy[name].hand:
            continue
        assert policy[name].wrapped, name
        assert "call.record_request(" in wrapper(Wrapped(of[0], policy[name], 0)), name


def test_a_rule_names_arguments_its_procedures_have(
    forms: dict[str, list[Form]], policy: dict[str, Policy]
) -> None:
    """Also of procedures that no MPI at hand declares, and whose wrappers no compiler here has seen."""
    for name, entry in policy.items():
        if not entry.volume:
            continue
        arguments = filter(None, re.split(r",\s*", entry.volume.split("(", 1)[1].rstrip(")")))
        for form in forms[name]:
            assert set(arguments) <= {p.name for p in form.parameters}, form.name


def test_rules_and_functions_by_hand_exist(policy: dict[str, Policy]) -> None:
    volume = (ROOT / "core/mpi/volume.h").read_text()
    hand = "".join(header.read_text() for header in sorted((ROOT / "core/mpi").glob("*_calls.h")))
    creation = (ROOT / "core/mpi/creation.h").read_text()
    for name, entry in policy.items():
        if entry.volume:
            assert re.search(rf"\bvoid {entry.volume.split('(')[0]}\(", volume), name
        if entry.hand:
            assert re.search(rf"^int {entry.hand}\(", hand, re.MULTILINE), name
        if entry.identity:
            assert re.search(rf"\bOrigin {entry.identity.split('(')[0]}\(", creation), name


def test_what_receives_reads_a_status_or_waits_for_one(
    forms: dict[str, list[Form]], policy: dict[str, Policy]
) -> None:
    for name, entry in policy.items():
        if entry.received:
            assert entry.received == "status", name
            kinds = {p.kind for p in forms[name][0].parameters}
            assert kinds & {"STATUS", "REQUEST"}, name


def declared_by(compiler: str, tmp_path: Path) -> set[str]:
    """Return the procedures the MPI of this compiler declares, by their MPI_ names."""
    source = tmp_path / "mpi.c"
    source.write_text("#include <mpi.h>\n")
    text = subprocess.run([compiler, "-E", str(source)], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\bP(MPI_[A-Za-z0-9_]+)\s*\(", text))


def test_an_mpi_is_at_hand() -> None:
    assert COMPILERS


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_procedure_an_mpi_declares_is_known(
    compiler: str, tmp_path: Path, spec: dict[str, Any], forms: dict[str, list[Form]]
) -> None:
    declared = declared_by(compiler, tmp_path)
    known = {form.name for of in forms.values() for form in of} | set(spec["removed"]["calls"])
    assert len(declared) > 300
    # Open MPI 5 declares one that no version of the standard has.
    assert declared - known <= {"MPI_Session_set_info"}


def test_what_came_after_mpi_3_1_is_what_a_library_of_it_lacks(
    tmp_path: Path,
    spec: dict[str, Any],
    policy: dict[str, Policy],
) -> None:
    recent = set(spec["recent"]["calls"])
    measured = {name for name, entry in policy.items() if entry.wrapped}
    for compiler in COMPILERS:
        source = tmp_path / "version.c"
        source.write_text("#include <mpi.h>\nversion MPI_VERSION.MPI_SUBVERSION\n")
        text = subprocess.run(
            [compiler, "-E", str(source)], capture_output=True, text=True, check=True
        ).stdout
        if "version 3.1" in text:
            assert recent == measured - declared_by(compiler, tmp_path)
        else:
            assert measured - declared_by(compiler, tmp_path) <= recent


def test_every_form_that_is_measured_has_an_entry_and_no_other(
    forms: dict[str, list[Form]], policy: dict[str, Policy]
) -> None:
    entries = re.findall(r"^ENTRY\((\w+), ", (ROOT / "generated/entries.inc").read_text(), re.MULTILINE)
    assert sorted(entries) == sorted(f.name for name, of in forms.items() if policy[name].wrapped for f in of)


def test_ids_and_slots_have_no_gap_and_no_duplicate() -> None:
    header = (ROOT / "generated/procedures.h").read_text()
    ids = [int(n) for n in re.findall(r"^  (?:unknown|MPI_\w+) = (\d+),", header, re.MULTILINE)]
    assert ids == list(range(len(ids)))
    slots = re.findall(r"^ENTRY\(\w+, (\d+)\)", (ROOT / "generated/entries.inc").read_text(), re.MULTILINE)
    assert [int(s) for s in slots] == list(range(len(slots)))
    assert f"slot_count = {len(slots)};" in header
