# SPDX-License-Identifier: Apache-2.0
"""Write docs/evidence/install.md from the times that tools/first_report.sh took.

python tools/first_report_page.py RESULTS PAGE
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
PyPI at this machine's speed of download. Ubuntu was not tried, because no
registry at hand has its packages.

"""


def main(results: Path, page: Path) -> None:
    """Write the page."""
    with results.open(encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    text = [
        HEAD,
        f"Machine: {os.cpu_count()} processors, {memory:.0f} GiB of memory. Load average over 15 minutes at the end: "
        f"{os.getloadavg()[2]:.1f};\na quiet machine is faster. What is not in the table was not run when this page was written.\n",
    ]
    summary = ["\n| system | who | way | to the first report |\n|---|---|---|--:|\n"]
    sections = []
    for (system, owner, way), steps in groupby(rows, key=lambda row: tuple(row[:3])):
        title = f"{NAMES.get(system, system)}, {WHO[owner]}, {WAYS[way]}"
        lines = [f"\n## {title}\n\n| who | command | s |\n|---|---|--:|\n"]
        total, is_whole = 0, True
        for _, _, _, who, command, tenths in steps:
            is_whole &= tenths != "failed"
            total += int(tenths) if tenths != "failed" else 0
            seconds = f"{int(tenths) / 10:.1f}" if tenths != "failed" else "failed"
            shown = command.replace("|", "\\|")
            lines.append(f"| {'administrator' if who == 'admin' else who} | `{shown}` | {seconds} |\n")
        sections += lines
        result = f"{total / 10:.0f} s" if is_whole else "failed"
        summary.append(f"| {NAMES.get(system, system)} | {WHO[owner]} | {WAYS[way]} | {result} |\n")
    page.write_text("".join([*text, *summary, *sections]), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
