# SPDX-License-Identifier: Apache-2.0
"""The thread sanitizer would see a race of ours: it sees one that is planted.

Only tools/sanitize.sh runs it: it needs a build with the sanitizer.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from harness import BUILD, ROOT, Mpi

VICTIM = ROOT / "core" / "state" / "threads.cpp"
# Threads count themselves when they come, without a lock and without an atomic addition.
PLANTED = {
    "Thread* enter_thread() noexcept {\n  const std::lock_guard<std::mutex> lock(mutex);\n": "Thread* enter_thread() noexcept {\n",
    "std::atomic<int> count{0};": "int count = 0;",
    "count.fetch_add(1, std::memory_order_relaxed);": "++count;",
    "count.load(std::memory_order_relaxed)": "count",
}


def run_as(target: str, instead: Mapping[str, Path]) -> None:
    """Run the command that made `target` in the build, with other paths `instead` of those named."""
    done = subprocess.run(
        ["ninja", "-C", BUILD, "-t", "commands", "-s", target], check=True, capture_output=True, text=True
    )
    words = shlex.split(done.stdout)
    assert instead.keys() <= set(words), f"{instead.keys()} are not all in: {done.stdout}"
    words = [str(instead.get(word, word)) for word in words if word not in {":", "&&"}]
    subprocess.run(words, check=True, cwd=BUILD, timeout=300)


@pytest.mark.parametrize("planted", [False, True])
def test_a_lock_that_is_left_out_is_seen(mpi: Mpi, planted: bool) -> None:
    folder = mpi.fresh("planted")
    text = VICTIM.read_text()
    for good, bad in PLANTED.items():
        assert good in text
        text = text.replace(good, bad if planted else good)
    copy = folder / VICTIM.name
    copy.write_text(text)

    made = folder / "changed.o"
    original = f"CMakeFiles/core_state.dir/{VICTIM.relative_to(ROOT)}.o"
    run_as(original, {str(VICTIM): copy, original: made, f"{original}.d": folder / "changed.d"})
    library = folder / "libcommlens.so"
    of_build = f"lib/{mpi.name}/libcommlens.so"
    run_as(of_build, {original: made, of_build: library})

    program = mpi.compile("storm.c", None, flags=["-Wno-stringop-overflow"])
    whole, mpi.library = mpi.library, library
    try:
        result = mpi.run(1, [program, "10000"], mode="preload", timeout=300)
    finally:
        mpi.library = whole
    if planted:
        assert result.rc != 0
        assert "data race" in result.stderr
        assert VICTIM.name in result.stderr
    else:
        assert (result.rc, "ThreadSanitizer" in result.stderr) == (0, False), result
