# SPDX-License-Identifier: Apache-2.0
"""The thread sanitizer would see a race of ours: it sees one that is planted.

Only tools/sanitize.sh runs it: it needs a build with the sanitizer.
"""

from __future__ import annotations

import json
import shlex
import subprocess

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


@pytest.mark.parametrize("planted", [False, True])
def test_a_lock_that_is_left_out_is_seen(mpi: Mpi, planted: bool) -> None:
    folder = mpi.fresh("planted")
    text = VICTIM.read_text()
    for good, bad in PLANTED.items():
        assert good in text
        text = text.replace(good, bad if planted else good)
    copy = folder / VICTIM.name
    copy.write_text(text)

    commands = json.loads((BUILD / "compile_commands.json").read_text())
    (entry,) = (entry for entry in commands if entry["file"] == str(VICTIM))
    command = [str(copy) if word == str(VICTIM) else word for word in shlex.split(entry["command"])]
    made = folder / "changed.o"
    command[command.index("-o") + 1] = str(made)
    subprocess.run(command, check=True, cwd=entry["directory"], timeout=300)

    rooms = ["base", "hot", "arena", "process", "state", "job", "profile", "collect", "out"]
    parts = [*(f"core_{room}" for room in rooms), "sqlite", f"wrappers_{mpi.name}", f"core_mpi_{mpi.name}"]
    objects = [path for part in parts for path in (BUILD / "CMakeFiles" / f"{part}.dir").rglob("*.o")]
    others = [path for path in objects if path.name != f"{VICTIM.name}.o"]
    library = folder / "libcommlens.so"
    exports = f"-Wl,--version-script={ROOT / 'cmake' / 'exports.map'}"
    link = [
        "c++",
        "-shared",
        "-fsanitize=thread",
        "-static-libstdc++",
        "-static-libgcc",
        "-Wl,-z,nodelete",
        exports,
    ]
    subprocess.run([*link, made, *others, "-ldl", "-o", library], check=True, timeout=300)

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
