# SPDX-License-Identifier: Apache-2.0
"""Run suites without and with commlens, and write docs/evidence/transparency.md; tools/proof.sh is the way in."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from . import page
from .run import RESULTS, launch_name, prove
from .suites import SUITES
from .summary import load, renew, save

PAGE = Path("docs/evidence/transparency.md")
KEPT = PAGE.with_suffix(".json")


def main() -> int:
    """Return 1 when anything differs."""
    parser = argparse.ArgumentParser(prog="tools/proof.sh", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}; by default all")
    parser.add_argument("--mpi", default="openmpi,mpich", help="which MPIs (default: %(default)s)")
    parser.add_argument(
        "--ranks", default="", help="only these numbers of ranks (default: what the suite says)"
    )
    parser.add_argument("--only", default="", help="only programs whose name matches this expression")
    parser.add_argument(
        "--again", type=int, default=5, help="most repetitions of what differs (default: %(default)s)"
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="do not run again what another core/ has been through without a difference; the page says which",
    )
    parser.add_argument(
        "--page",
        action="store_true",
        help="only write the page, from the summaries and the results of this machine",
    )
    options = parser.parse_args()
    unknown = [name for name in options.suites if name not in SUITES]
    if unknown:
        parser.error(f"no suite {unknown[0]}")
    wanted = {int(text) for text in options.ranks.split(",") if text}
    bad = 0
    kept = load(KEPT)
    if not options.page:
        for name in options.suites or SUITES:
            for mpi in options.mpi.split(","):
                for ranks in SUITES[name].ranks:
                    if not wanted or ranks in wanted:
                        bad += prove(
                            SUITES[name],
                            mpi,
                            ranks,
                            only=options.only,
                            again=options.again,
                            keep=options.keep,
                            kept=kept.get(launch_name(SUITES[name], mpi, ranks)),
                        )
    declared = [
        launch_name(suite, mpi, ranks)
        for suite in SUITES.values()
        for mpi in suite.mpis
        for ranks in suite.ranks
    ]
    summaries = renew(kept, RESULTS, declared)
    save(KEPT, summaries)
    PAGE.write_text(page.write(summaries, declared))
    print(f"proof   {PAGE}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parents[1])
    sys.exit(main())
