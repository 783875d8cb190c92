# SPDX-License-Identifier: Apache-2.0
"""Performance variables of the MPI library as metrics (COMMLENS_PVARS)."""

from __future__ import annotations

from typing import Any

import pytest
from harness import Mpi
from launches import Result
from test_shapes import MONITORING

FLUSHES = {"COMMLENS_PCONTROL": "mpip"}
LOST = "x_lost (could not be read later, with error "

Value = tuple[str, str, int, int, float, float, float, float]
"""Name, unit, rank, count, sum, minimum, maximum, last value."""


def values(done: Result, *of: str) -> list[Value]:
    """Return the values of the metrics that begin with one of `of`."""
    assert done.rc == 0, done
    profile = done.open()
    profile.check()
    rows = profile.rows(
        "SELECT m.name, unit, rank, count, sum, min, max, last FROM metric_value v JOIN metric m ON m.id = metric "
        "JOIN region_path p ON p.region = v.region WHERE path = '' ORDER BY m.name, rank"
    )
    found: list[Any] = [tuple(row.values()) for row in rows]
    return [row for row in found if row[0].startswith(of)]


def simulated(mpi: Mpi, ranks: int, pvars: str, *, env: dict[str, str] | None = None) -> Result:
    """Run the program whose MPI library has a variable of each class."""
    library = mpi.compile("pvar_library.c", shared=True)
    program = mpi.compile("pvars_of_classes.c", None, library)
    return mpi.run(ranks, [program], {"COMMLENS_PVARS": pvars, **FLUSHES, **(env or {})})


def grown(name: str, unit: str, rank: int, *, scale: float = 1) -> Value:
    """Return what is stored of a variable that grows: 10 + rank before the flush, nothing before the pause, then 5."""
    first = (10 + rank) * scale
    return (name, unit, rank, 3, first + 5 * scale, 0, first, 5 * scale)


def momentary(name: str, unit: str, rank: int) -> Value:
    """Return what is stored of a variable that was 7 at the flush and at the pause, and 3 at the end."""
    return (name, unit, rank, 3, 17, 3, 7, 3)


def test_each_class_is_read_as_the_standard_means_it(mpi: Mpi) -> None:
    """Growth is counted since the last reset, without pauses; other values are those of each reading."""
    done = simulated(mpi, 2, "f_*")
    assert len(done.said) == 1, done
    expected: list[Value] = []
    for rank in range(2):
        tens = 10 + rank
        expected += [
            grown("f_counter", "counter", rank),
            grown("f_narrow", "counter", rank),  # overflows
            grown("f_timer", "s", rank, scale=0.25),
            grown("f_ticks", "timer", rank),
            # It has the values of the counter of this name.
            ("f_counter (level)", "level", rank, 3, 16225 + 3 * rank, 5110 + rank, 6005 + rank, 6005 + rank),
            ("f_array", "aggregate", rank, 9, 6 * tens + 30, 0, 3 * tens, 15),
            ("f_state", "state", rank, 3, -17, -7, -3, -3),
            momentary("f_level", "level", rank),
            momentary("f_high", "high watermark", rank),
            momentary("f_low", "low watermark", rank),
            momentary("f_percentage", "percentage", rank),
            momentary("f_size", "size", rank),
            momentary("f_generic", "generic", rank),
        ]
    assert values(done, "f_") == sorted(expected)


def test_what_cannot_be_read_is_named_with_the_reason(mpi: Mpi) -> None:
    done = simulated(mpi, 2, "x_*, f_level, nothing_like_it")
    assert [value[:2] for value in values(done, "f_")] == [("f_level", "level")] * 2
    assert values(done, "x_") == []
    line = next(line for line in done.said if "COMMLENS_PVARS" in line)
    assert line.startswith("commlens: rank 0 (and 1 more ranks): not read of COMMLENS_PVARS: "), line
    for reason in (
        "x_text (no number)",
        "x_window (bound to a window)",
        "x_group (bound to an object)",
        "x_refused (refused with error ",
        "x_huge (more than 65536 values)",
        "x_class (of no class of the standard)",
        "nothing_like_it (no variable of this MPI library has this name)",
        LOST,
    ):
        assert reason in line, reason
    unused = "x_unused (of a component that is not in use)"
    assert (unused in line) == (mpi.family == "openmpi"), line


def test_patterns_choose_and_exclude(mpi: Mpi) -> None:
    names = {value[0] for value in values(simulated(mpi, 1, "!x_*,!f_le*"), "f_")}
    assert "f_low" in names
    assert "f_level" not in names
    assert len(names) == 12


def test_the_word_list_prints_the_variables(mpi: Mpi) -> None:
    done = simulated(mpi, 2, "list")
    said = [line.removeprefix("commlens:") for line in done.said]
    assert said[0].startswith(" COMMLENS_PVARS: this MPI library has "), done
    assert "   f_level (level): says ?[31mf_level" in said
    assert "   x_window (counter; cannot be read: bound to a window): says ?[31mx_window" in said
    assert sum("f_counter (counter)" in line for line in said) == 1, "only rank 0 prints"
    assert values(done, "") == []


def test_a_program_of_sessions_has_no_variables_of_communicators(mpi: Mpi) -> None:
    library = mpi.compile("pvar_library.c", shared=True)
    program = mpi.compile("sessions.c", None, "-Wl,--no-as-needed", library)
    done = mpi.run(2, [program, "only"], {"COMMLENS_PVARS": "f_counter,f_array"})
    if done.rc == 77:
        pytest.skip("this MPI library has no sessions")
    assert values(done, "f_counter")[0][:5] == ("f_counter", "counter", 0, 1, 0)
    assert values(done, "f_array") == []
    assert any(
        "f_array (bound to a communicator, but there is no MPI_COMM_WORLD)" in line for line in done.said
    )


def test_without_the_option_mpi_t_is_not_touched(mpi: Mpi) -> None:
    done = simulated(mpi, 1, "")
    assert len(done.said) == 1
    assert values(done, "") == []


def test_an_unknown_name_is_said_with_every_library(mpi: Mpi) -> None:
    done = mpi.run(2, [mpi.compile("pvars_of_library.c")], {"COMMLENS_PVARS": "no_such_variable"})
    assert done.rc == 0, done
    expected = (
        "commlens: rank 0 (and 1 more ranks): not read of COMMLENS_PVARS: no_such_variable "
        "(no variable of this MPI library has this name)"
    )
    assert expected in done.said


def test_all_variables_of_every_library_can_be_asked_for(mpi: Mpi) -> None:
    """Open MPI 4.1 has some whose reading ends the process."""
    done = mpi.run(2, [mpi.compile("pvars_of_library.c")], {"COMMLENS_PVARS": "list,*"})
    assert done.rc == 0, done
    done.open().check()
    assert any("COMMLENS_PVARS: this MPI library has " in line for line in done.said)


def test_unexpected_messages_are_seen_at_a_flush(mpi: Mpi) -> None:
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI has this variable")
    env = {"COMMLENS_PVARS": "pml_ob1_unexpected_msgq_length", **FLUSHES}
    done = mpi.run(2, [mpi.compile("pvars_of_library.c")], env)
    # Two readings, of one element for each of the two processes.  Messages of barriers may wait as well, but not before
    # the flush of rank 1.
    name, unit, rank, count, *_, largest, _ = values(done, "pml_")[1]
    assert (name, unit, rank, count, largest) == ("pml_ob1_unexpected_msgq_length", "size", 1, 4, 3)


def test_a_session_of_the_program_is_not_disturbed(mpi: Mpi) -> None:
    """Both count the same collectives, each since it began."""
    if mpi.name != "openmpi":
        pytest.skip("these variables are those of Open MPI 4")
    name = "coll_monitoring_a2a_count"
    program = mpi.compile("pvars_of_library.c")
    env = {"COMMLENS_PVARS": name, "COMMLENS_MATRIX": "off", **MONITORING}
    # Five allreduces before the flush, a barrier after it.
    alone = mpi.run(2, [program], env)
    assert [value[2:] for value in values(alone, name)] == [(rank, 2, 6, 1, 5, 1) for rank in range(2)]
    done = mpi.run(2, [program, name], env)
    assert done.lines == ["0 counts 4", "1 counts 4"], done
    # When the program stops its handle, Open MPI counts for no handle any more.
    assert [value[2:] for value in values(done, name)] == [(rank, 2, 5, 0, 5, 0) for rank in range(2)]
