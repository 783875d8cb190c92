# SPDX-License-Identifier: Apache-2.0
"""Write docs/evidence/install.md from the times that tools/first_report.sh took.

python tools/first_report_page.py RESULTS PAGE

RESULTS is a folder with a file for each case: system, user, way, who ran a command, the command, tenths of a second or
"failed", the load average of the machine after it, and the commit. If a cache of compiled files was used, a file beside it has the
number of files that came from the cache, and that of all files.
"""

from __future__ import annotations

import csv
import os
import sys
from itertools import groupby
from pathlib import Path

NAMES = {"bookworm": "Debian 12", "trixie": "Debian 13"}
WAYS = {"pip": "pip", "package": "Debian package", "checkout": "checkout"}
WHO = {"root": "as root", "user": "as a user without rights"}

HEAD = """# From nothing to the first report

Each section begins in an empty Debian: what `mmdebstrap --variant=minbase` installs, without Python, compiler or MPI. It
ends with the first report. The commands are those of the [guide](../guide/install.md), run by

    make wheels packages first-report        # as root; hours

A user without rights cannot install Python, MPI or a compiler. What an administrator installs for them is marked; a
cluster usually has it already. The job is a Python program with 2 ranks. Times are in seconds, with Debian's mirror and
PyPI at this machine's speed of download. Ubuntu was not tried, because no registry at hand has its packages.

"""


def read(case: Path) -> list[list[str]]:
    """Return the rows of one case; none if it was not run."""
    if not case.exists():
        return []
    with case.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def from_cache(counts: Path) -> tuple[int, int]:
    """Return how many files came from the cache, and how many there were."""
    if not counts.exists():
        return 0, 0
    hits, files = counts.read_text(encoding="utf-8").split()
    return int(hits), int(files)


def main(results: Path, page: Path) -> None:
    """Write the page."""
    rows = [
        row
        for system in NAMES
        for who in WHO
        for way in WAYS
        for row in read(results / f"{system}-{who}-{way}.tsv")
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    text = [
        HEAD,
        f"Machine: {os.cpu_count()} processors, {memory:.0f} GiB of memory. The load is the load average at that time. Where it\n"
        'is well above the number of processors, other work made the times longer. "(cache)": most object files came from the\n'
        "cache of an earlier compilation, so that the time of the compilation says nothing. What is not in the table was not\n"
        "run.\n",
    ]
    summary = ["\n| system | who | way | to the first report | load | commit |\n|---|---|---|--:|--:|---|\n"]
    sections = []
    for (system, owner, way), group in groupby(rows, key=lambda row: tuple(row[:3])):
        steps = list(group)
        title = f"{NAMES.get(system, system)}, {WHO[owner]}, {WAYS[way]}"
        lines = [f"\n## {title}\n\n| who | command | s |\n|---|---|--:|\n"]
        total, is_whole = 0, True
        for _, _, _, who, command, tenths, *_ in steps:
            is_whole &= tenths != "failed"
            total += int(tenths) if tenths != "failed" else 0
            seconds = f"{int(tenths) / 10:.1f}" if tenths != "failed" else "failed"
            shown = command.replace("|", "\\|")
            lines.append(f"| {'administrator' if who == 'admin' else who} | `{shown}` | {seconds} |\n")
        hits, files = from_cache(results / f"{system}-{owner}-{way}.cache")
        if hits:
            lines.append(
                f"\nOf {files} files that were compiled, {hits} came from the cache of an earlier compilation.\n"
            )
        sections += lines
        load, commit = max(float(step[6]) for step in steps), steps[-1][7]
        result = f"{total / 10:.0f} s" if is_whole else "failed"
        summary.append(
            f"| {NAMES.get(system, system)} | {WHO[owner]} | {WAYS[way]}{' (cache)' if 2 * hits > files else ''} | {result} | {load:.1f} | {commit} |\n"
        )
    page.write_text("".join([*text, *summary, *sections]), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
