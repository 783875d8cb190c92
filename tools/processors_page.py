# SPDX-License-Identifier: Apache-2.0
"""Write docs/evidence/processors.md from the results of tools/processors.sh.

    python tools/processors_page.py RESULTS PAGE

All runs together take hours. Those whose results are not in RESULTS keep what the record beside the page, a JSON file, has
of them; each says at which commit it was made.

RESULTS holds the JUnit files unit-PROCESSOR.xml, pages-PROCESSOR.xml, and mpi-PROCESSOR-FILE.xml for each test file;
self-test-PROCESSOR.txt, what `commlens self-test` printed with each MPI library; and linux, the version of the kernel of
the virtual machine.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from summary import Case, Suite

Run = dict[str, Any]
Record = dict[str, Any]

WHAT = {
    "unit": "unit tests",
    "pages": "unit tests, pages of 64 KiB",
    "mpi": "tests with Debian's Open MPI and MPICH, 1 to 64 ranks",
    "self-test": "`commlens self-test`{how}, with Debian's Open MPI and MPICH",
}
LIBRARIES = ("Open MPI", "MPICH")
OUTCOMES = ("passed", "failed", "skipped")
SINGLE_PROGRAMS = ("ppc64le", "riscv64", "s390x")
"""Processors for which single programs run under qemu-user."""
_NAMES_OF_EMULATION = {
    "the emulator has no `perf_event_open()`": ("the_kernel_counts_page_faults_of_this_thread",),
    "probably `readelf` does not see the emulator's `/lib`": (
        "every_library_has_the_path_base_and_build_id_the_system_says",
    ),
    "probably the cross compiler's folder has no zlib": (
        "what_is_loaded_later_counts_when_it_is_visible_or_an_mpi_library",
    ),
    "probably the emulator makes up `/proc/self/stat`": (
        "a_process_has_a_name_and_a_parent",
        "a_process_in_a_container_is_known_from_outside_from_within_and_not_from_beside",
        "processes_of_a_time_namespace_alone_run_and_are_gone_as_others",
        "each_snapshot_has_what_was_counted_by_then",
        "between_two_snapshots_a_metric_has_the_values_of_that_time",
        "between_two_snapshots_untimed_calls_are_those_of_that_time_and_both_ends_add_to_the_error",
        "between_two_snapshots_datatypes_have_the_calls_of_that_time",
        "the_last_state_of_a_process_that_has_removed_its_arena_is_recorded",
    ),
    "the emulator has no `process_vm_readv()`; probably it refuses a wrong `rt_sigprocmask()` before it looks at the"
    " memory": ("a_second_argument_that_is_no_text_is_passed_by",),
    "probably the emulator keeps a record of each page of 15 GiB that are mapped": (
        "segments_in_a_hole_take_neither_memory_nor_time",
    ),
}
"""Why unit tests fail under qemu-user; "probably" where only the message and the emulator were looked at.

A test that is not here is a fault of ours until somebody has looked."""

OF_EMULATION = {name: reason for reason, names in _NAMES_OF_EMULATION.items() for name in names}

TOP = """\
# Other processors

commlens has assembly for x86-64 and aarch64. On ppc64le, riscv64 and s390x it is compiled from C++ alone
([decision 47](../decisions/0047-processors.md)). This page has the results of

    make test-aarch64        # as root, on Debian with Linux 6.7 or later; hours

with Debian's cross compilers ({compiler}) and {emulator}, which translates each instruction:

- **aarch64** is a virtual machine with two processors. Its Linux ({linux}) is built for the test, once with pages of 4 KiB
  and once with pages of 64 KiB. It has Debian's packages for aarch64, and a copy of the checkout at the same place, so that
  the tests with MPI use the same harness as those on x86-64. The tests with MPI have pages of 64 KiB.
- **ppc64le, riscv64 and s390x**: each test is a single program under qemu-user. Its system calls go to the Linux of x86-64;
  the emulator answers some of them itself.
- **portable** is the library without assembly on x86-64, not in emulation. It has no call paths, so that their tests are
  left out.

"""
BOTTOM = """\
## What remains to be tried on real machines

No machine with one of these processors was at hand. The emulator executes instructions one after the other on x86-64, so
that these remain to be tried on real machines:

- **Order of memory accesses.** aarch64, ppc64le and riscv64 reorder loads and stores that x86-64 does not. The emulator runs
  on x86-64 and adds barriers. Data that threads share is accessed by C++ atomics with the orders that the language demands;
  errors in these would not show here.
- **The counter.** `cntvct_el0` of QEMU 7.2 runs at 62.5 MHz and follows the clock of x86-64. Not tried: other
  frequencies, machines whose counter the kernel reads itself because of an erratum, and the cost of a reading.
- **Costs.** Nothing on this page is a time of a processor. What a call costs on aarch64 is not measured.
- **Signed return addresses and branch targets** (PAC, BTI). The emulator has both; the packages of Debian 12 are compiled without them.
- **Counters of the processor** (`COMMLENS_COUNTERS`). Linux counts its own events in the virtual machine; the emulator
  counts few of the processor's.
- **Floating-point traps.** Many aarch64 processors have none; the emulator has none, either.
- **Networks and shared memory of several nodes**, Slurm, and MPI libraries other than Debian's.
- **s390x is the only big-endian processor.** Its profiles are SQLite files, which are the same everywhere; its arenas are
  read by a `commlens-arena` of the same processor.
"""


def version(*command: str) -> str:
    """Return the first number with a dot that a program prints about itself."""
    printed = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\d+\.\d+[.\d]*", printed)
    return found[0] if found else "unknown"


def printed(case: Case) -> str:
    """Return what the program of a unit test has printed."""
    return "".join(element.text or "" for element in case.element.iter("system-out"))


def counts_of(case: Case) -> tuple[int, int]:
    """Return how many tests passed and failed; a program of unit tests has many, and counts them at its end."""
    found = re.search(r"^(\d+) passed, (\d+) failed$", printed(case), re.MULTILINE)
    if found:
        return int(found[1]), int(found[2])
    return int(case.outcome == "passed"), int(case.outcome == "failed")


def run_of(name: str, cases: list[Case]) -> Run:
    """Return what one run of tests has shown; its name is the kind and the processor."""
    kind, processor = name.split()
    counted = [counts_of(case) for case in cases]
    bad = [case for case in cases if case.outcome != "passed"]
    return {
        "programs": [] if kind == "mpi" else sorted(str(case.element.get("name")) for case in cases),
        "passed": sum(passed for passed, _ in counted),
        "failed": sum(failed for _, failed in counted),
        "skipped": sum(case.outcome == "skipped" for case in cases),
        "files": file_counts(cases) if kind == "mpi" else {},
        "not_passed": sorted({line for case in bad for line in complaints(case, processor)}),
    }


def self_test(output: str) -> Run:
    """Return what `commlens self-test` has printed, as one test for each MPI library."""
    passed = output.count("all checks passed")
    return {
        "programs": [],
        "passed": passed,
        "failed": len(LIBRARIES) - passed,
        "skipped": 0,
        "files": {},
        "not_passed": [],
    }


def row(name: str, run: Run) -> str:
    """Return the line of the table for a run."""
    kind, processor = name.split()
    programs = f": {', '.join(run['programs'])}" if run["programs"] else ""
    how = " of the wheel, installed with pip, pages of 64 KiB" if name == "self-test aarch64" else ""
    what = WHAT[kind].format(how=how)
    counts = " | ".join(str(run[outcome]) for outcome in OUTCOMES)
    return f"| {processor} | {what}{programs} | {counts} | `{run['commit']}`, {run['date']} |"


def file_counts(cases: list[Case]) -> dict[str, list[int]]:
    """Return how many tests of each file with MPI had each of the outcomes."""
    files: dict[str, list[Case]] = {}
    for case in cases:
        files.setdefault((case.element.get("classname") or "").split(".")[-1], []).append(case)
    return {
        name: [sum(case.outcome == outcome for case in of) for outcome in OUTCOMES]
        for name, of in sorted(files.items())
    }


def complaints(case: Case, processor: str) -> list[str]:
    """Return a line for each test of a case that has not passed, with the reason."""
    failed = re.findall(r"failed checks in (\w+)$", printed(case), re.MULTILINE)
    if failed:
        program, known = case.element.get("name"), OF_EMULATION if processor in SINGLE_PROGRAMS else {}
        return [f"- `{program}`: `{name}`: {known.get(name, 'not yet understood')}" for name in failed]
    return [f"- {case.name}: {'; '.join(case.reasons) or failure(case)}"]


def failure(case: Case) -> str:
    """Return why a case failed, without the command that did."""
    messages = [child.get("message") or "" for child in case.element if child.tag in ("failure", "error")]
    return re.sub(r"\[.*\]", "", " ".join(messages).splitlines()[0] if any(messages) else "failed")[:200]


def measured(results: Path) -> dict[str, Run]:
    """Return the runs whose results are in a folder, by their kind and processor."""
    cases: dict[str, list[Case]] = {}
    for file in sorted(results.glob("*-*.xml")):
        kind, processor = file.stem.split("-")[:2]
        cases.setdefault(f"{kind} {processor}", []).extend(Suite(file).cases)
    runs = {name: run_of(name, of) for name, of in cases.items()}
    for file in results.glob("self-test-*.txt"):
        runs[f"self-test {file.stem.removeprefix('self-test-')}"] = self_test(
            file.read_text(encoding="utf-8")
        )
    head = ["git", "log", "-1", "--format=%h %cs", "--abbrev=8"]
    commit, date = subprocess.run(head, capture_output=True, text=True, check=True).stdout.split()
    return {name: {**run, "commit": commit, "date": date} for name, run in runs.items()}


def page(record: Record) -> str:
    """Return the text of the page."""
    runs = dict(sorted(record["runs"].items(), key=lambda item: item[0].split()[::-1]))
    lines = [
        TOP.format(**record["tools"]),
        "| processor | tests | passed | failed | skipped | commit |\n|---|---|--:|--:|--:|---|",
        *(row(name, run) for name, run in runs.items()),
        "\nEach name of unit tests is a program with all tests of one folder of `core/`. What is not in the table was not run.\n",
    ]
    for name, run in runs.items():
        kind, processor = name.split()
        if run["files"]:
            lines += [
                f"## With MPI, {processor}\n",
                "| file | passed | failed | skipped |\n|---|--:|--:|--:|",
            ]
            lines += [
                f"| `{file}.py` | {' | '.join(map(str, counts))} |" for file, counts in run["files"].items()
            ]
            lines.append("")
        if run["not_passed"]:
            lines += [f"Not passed ({WHAT[kind].format(how='')}, {processor}):\n", *run["not_passed"], ""]
    return "\n".join([*lines, BOTTOM])


def main() -> None:
    """Add the results to the record, and write the page."""
    results, target = map(Path, sys.argv[1:])
    store = target.with_suffix(".json")
    record: Record = json.loads(store.read_text(encoding="utf-8"))
    record["runs"] |= measured(results)
    if (results / "linux").exists():
        record["tools"] = {
            "compiler": "GCC " + version("aarch64-linux-gnu-gcc", "-dumpfullversion"),
            "emulator": "QEMU " + version("qemu-system-aarch64"),
            "linux": (results / "linux").read_text(encoding="ascii").strip(),
        }
    store.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    target.write_text(page(record), encoding="utf-8")


if __name__ == "__main__":
    main()
