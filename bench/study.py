# SPDX-License-Identifier: Apache-2.0
"""Which algorithm of MPI_Alltoall is the fastest for our FFT? Runs it with each, and writes docs/cases/fft.md.

The page has the commands that answer the question, what they print for the runs of this machine, and a conclusion. Runs
are stored in build/study, and continue where they were stopped; --again starts from the beginning.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from bench.run import RUNNER, launch  # noqa: E402

FOLDER = ROOT / "build" / "study"
PAGE = ROOT / "docs" / "cases" / "fft.md"
TEMPLATE = ROOT / "bench" / "study.md.in"
SOURCE = ROOT / "bench" / "apps" / "fft.c"
YIELD = ROOT / "tests" / "mpi" / "programs" / "sleep_when_idle.c"
NEVER_SLEEP = f"-DPOLLS_BEFORE_SLEEP={2**31 - 1}"
ARGUMENTS = ("64", "20")  # points along an edge, repeats
SEED = 1
WIDTH = 120  # columns of the printed tables


class Library(NamedTuple):
    """An MPI library: its name, and for each algorithm of MPI_Alltoall the environment that chooses it."""

    name: str
    algorithms: dict[str, dict[str, str]]


def tuned(number: int) -> dict[str, str]:
    """Return the environment that chooses an algorithm of Open MPI's component tuned."""
    return {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_alltoall_algorithm": str(number),
    }


LIBRARIES = {
    "openmpi": Library(
        "Open MPI",
        {"linear": tuned(1), "pairwise": tuned(2), "bruck": tuned(3), "linear-sync": tuned(4)},
    ),
    "mpich": Library(
        "MPICH",
        {
            name: {"MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM": name}
            for name in ("brucks", "pairwise", "pairwise_sendrecv_replace", "scattered")
        },
    ),
}


def build(mpi: str, folder: Path) -> dict[str, str]:
    """Build the program as `fft`, and go to its folder; return the environment in which ranks that wait yield.

    The program is called by its name in the folder, so that no profile has a path of this machine.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    program = folder / "fft"
    compiler = f"mpicc.{mpi}"
    subprocess.run([compiler, "-O2", f"-I{SOURCE.parent}", SOURCE, "-o", program, "-lm"], check=True)
    if mpi == "openmpi":
        return {"OMPI_MCA_mpi_yield_when_idle": "1"}
    library = folder / "yield.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", NEVER_SLEEP, YIELD, "-o", library], check=True)
    return {"LD_PRELOAD": str(library)}


def run(mpi: str, ranks: int, path: Path, environment: dict[str, str], **options: str) -> None:
    """Run the program in an environment, with options of commlens; the profile is `path`."""
    argv = [
        "env",
        *(f"{name}={value}" for name, value in environment.items()),
        str(RUNNER),
        "./fft",
        *ARGUMENTS,
    ]
    launch(mpi, ranks, argv, None, path, OUTPUT=str(path), QUIET="1", **options)


def measure(mpi: str, ranks: int, runs: int) -> None:
    """Run the program with each algorithm, in random order within each round."""
    folder = FOLDER / mpi
    environment = build(mpi, folder)
    dice = random.Random(SEED)
    algorithms = LIBRARIES[mpi].algorithms
    for number in range(runs):
        for alg in dice.sample(list(algorithms), len(algorithms)):
            path = folder / f"{alg}-{number}.db"
            if path.exists():
                continue
            print(f"{LIBRARIES[mpi].name}, {alg}, run {number + 1} of {runs}", flush=True)
            run(mpi, ranks, path, {**environment, **algorithms[alg]}, LABEL=f"alg={alg} run={number}")


def look_inside(mpi: str, ranks: int) -> None:
    """Run each algorithm once with the messages inside collectives, for `commlens algorithms`."""
    folder = FOLDER / f"{mpi}-inside"
    environment = build(mpi, folder)
    for alg, chosen in LIBRARIES[mpi].algorithms.items():
        path = folder / f"{alg}.db"
        if path.exists():
            continue
        run(mpi, ranks, path, {**environment, **chosen}, LABEL=f"alg={alg}", MATRIX="all")


def commlens(command: str, *options: str) -> str:
    """Return what a command prints, run where the profiles are; the command may have globs."""
    words = []
    for word in shlex.split(command):
        found = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob(word)) if "*" in word else []
        words += found or [word]
    done = subprocess.run(
        [sys.executable, "-m", "commlens", *words, *options],
        cwd=FOLDER,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "COLUMNS": str(WIDTH)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"commlens {command} ended with {done.returncode}\n{done.stderr}")
    return done.stdout


def shown(command: str) -> str:
    """Return a command and its output as a block of the page; report headers are left out."""
    output = commlens(command)
    if command.startswith("report"):
        output = output.split("\n\n", 1)[1]
    lines = [f"$ commlens {command}", "", *output.rstrip().splitlines()]
    return "\n".join(f"    {line}".rstrip() for line in lines)


def drawn(command: str, name: str) -> str:
    """Draw a chart; return the command and the image for the page."""
    image = PAGE.parent / "fft" / f"{name}.svg"
    image.parent.mkdir(parents=True, exist_ok=True)
    image.unlink(missing_ok=True)  # commlens overwrites no file
    commlens(f"chart {command}", "--to", str(image))
    return f"    $ commlens chart {command} --to {name}.svg\n\n![{command}](fft/{name}.svg)"


def compared(mpi: str, more: str) -> dict[str, Any]:
    """Return the comparison of the algorithms of a library, limited by further options."""
    found: dict[str, Any] = json.loads(commlens(f"compare {mpi}/*.db --by alg {more}", "--format", "json"))
    return found


def conclusion(mpi: str) -> str:
    """Return what is resolved, and what is not: of the whole run, and of each size of communicators."""
    lines = []
    for what, more in (
        ("the elapsed time", ""),
        ("`MPI_Alltoall` on communicators of 4 ranks", "--comm-size 4 --op Alltoall"),
        ("`MPI_Alltoall` on communicators of 2 ranks", "--comm-size 2 --op Alltoall"),
    ):
        wanted = "all operations" if more else "elapsed time"
        rows = [row for row in compared(mpi, more)["rows"] if row["operation"] == wanted]
        best = next(row for row in rows if row["fastest"])
        slower = [f"{row['value']} ({row['change']:+.1%})" for row in rows if row["significant"]]
        rest = [row["value"] for row in rows if not row["fastest"] and not row["significant"]]
        text = f"- For {what}, {best['value']} has the smallest median."
        text += f" These are slower: {', '.join(slower)}." if slower else ""
        text += f" Not resolved: {', '.join(rest)}." if rest else " Everything is resolved."
        lines.append(text)
    return "\n".join(lines)


def machine(ranks: int, runs: int) -> str:
    """Return the sentence about the machine and the runs."""
    model = next(
        (
            line.partition(": ")[2].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return (
        f"{runs} runs of each algorithm on {ranks} ranks, in random order, on {os.cpu_count()} processors ({model}), "
        f"{datetime.datetime.now(datetime.timezone.utc).date()}."
    )


def page(libraries: list[str], ranks: int, runs: int) -> str:
    """Return the page: the template, in which lines that begin with @ are replaced."""
    head, section, end = TEMPLATE.read_text(encoding="utf-8").split("@library\n")
    parts = [head.replace("@machine", machine(ranks, runs))]
    for mpi in libraries:
        part = section.replace("@name", LIBRARIES[mpi].name).replace("@mpi", mpi)
        only = r"\1" if mpi == "openmpi" else ""
        part = re.sub(r"@openmpi\n(.*?)@end\n", only, part, flags=re.DOTALL)
        part = re.sub("^@run (.+)$", lambda found: shown(found[1]), part, flags=re.MULTILINE)
        part = re.sub(
            "^@chart ([^ ]+) (.+)$", lambda found: drawn(found[2], found[1]), part, flags=re.MULTILINE
        )
        parts.append(part.replace("@conclusion", conclusion(mpi)))
    return "".join([*parts, end])


def main() -> None:
    """Run the program, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--mpi", choices=list(LIBRARIES), action="append", help="only this library; repeatable"
    )
    parser.add_argument("--ranks", type=int, default=8, help="ranks of each run (default: 8)")
    parser.add_argument("--runs", type=int, default=10, help="runs of each algorithm (default: 10)")
    parser.add_argument("--again", action="store_true", help="remove the runs of before")
    options = parser.parse_args()
    libraries = options.mpi or list(LIBRARIES)
    if options.again:
        shutil.rmtree(FOLDER, ignore_errors=True)
    for mpi in libraries:
        measure(mpi, options.ranks, options.runs)
    if "openmpi" in libraries:
        look_inside("openmpi", options.ranks)
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(libraries, options.ranks, options.runs), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
