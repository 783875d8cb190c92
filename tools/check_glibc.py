# SPDX-License-Identifier: Apache-2.0
"""Check that programs and libraries run with an old C library.

    python tools/check_glibc.py [--strict] VERSION FILE...

Prints a line for each function that a FILE needs and that glibc does not have in VERSION; ends with 1 if there is one.
What a newer system has built also needs newer versions of functions that the old glibc has, and functions that its
compiler calls.  With --strict, for what is built for the old glibc, these count, too.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator

# Moved from libpthread and libdl into libc, in 2.32 to 2.34; functions of <sys/stat.h>, inline before 2.33.
OLD_FUNCTIONS = re.compile(
    r"__libc_start_main|(__)?pthread_\w+|sem_\w+|dl(open|close|error|addr|addr1|sym|vsym|info)|[fl]?stat(64)?|fstatat(64)?"
    r"|__isoc23_\w+|(exp|log|pow)(2|f|2f)?|(timer|mq|shm)_\w+"
)
# New functions that libpthread has got since 2.28, to which the above does not apply.
NEW_FUNCTIONS = re.compile(r"(pthread|sem)_\w*clock\w*|pthread_attr_[gs]etsigmask_np|pthread_gettid_np")
# libstdc++ and libgcc call these where they exist; other builds of them do not.
OF_THE_COMPILER = frozenset(
    ["__libc_single_threaded", "_dl_find_object", "arc4random", "__cxa_thread_atexit_impl"]
)


def needed(table: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the functions of glibc in the output of `readelf --dyn-syms`, each with its version."""
    for line in table.splitlines():
        found = re.search(r" UND (\w+)@+GLIBC_([\d.]+)", line)
        if found:
            yield found[1], tuple(map(int, found[2].split(".")))


def too_new(
    symbols: Iterable[tuple[str, tuple[int, ...]]], limit: tuple[int, ...], is_strict: bool
) -> list[str]:
    """Return the functions that glibc `limit` lacks, each with the version that has it."""
    found = []
    for name, version in symbols:
        is_old = OLD_FUNCTIONS.fullmatch(name) and not NEW_FUNCTIONS.fullmatch(name)
        if version > limit and (is_strict or not (is_old or name in OF_THE_COMPILER)):
            found.append(f"{name} (glibc {'.'.join(map(str, version))})")
    return sorted(set(found))


def main(words: list[str]) -> int:
    """Check the named files; return the exit code."""
    arguments = argparse.ArgumentParser(description="check that files run with an old glibc")
    arguments.add_argument("--strict", action="store_true")
    arguments.add_argument("version")
    arguments.add_argument("files", nargs="+", metavar="FILE")
    wanted = arguments.parse_args(words)
    limit = tuple(map(int, wanted.version.split(".")))
    code = 0
    for file in wanted.files:
        command = ["readelf", "--wide", "--dyn-syms", file]
        table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for function in too_new(needed(table), limit, wanted.strict):
            print(f"{file} needs {function}, newer than {wanted.version}")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
