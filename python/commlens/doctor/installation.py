# SPDX-License-Identifier: Apache-2.0
"""Checks the installation of commlens."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from commlens.base.processor import processor
from commlens.doctor.families import TITLES
from commlens.doctor.finding import Finding, ok, problem, warning
from commlens.doctor.loader import Loader
from commlens.launch.runner import find_runner

# Where commlens-run looks for the libraries, from its own folder (core/programs/commlens_run.c).
PLACES = (
    "../lib/{}",
    "../lib/commlens/{}",
    "../lib64/commlens/{}",
    f"../lib/{processor().folder}/commlens/{{}}",
    "../libexec/commlens/{}",
)
LIBRARY = "libcommlens.so"
ASK_VERSION = "import ctypes; ask = ctypes.CDLL(None).commlens_version; ask.restype = ctypes.c_char_p; print(ask().decode())"


@dataclass
class Install:
    """The installed parts of commlens."""

    runner: Path | None
    libraries: dict[str, Path] = field(default_factory=dict)  # by family


def find_libraries(runner: Path) -> dict[str, Path]:
    """Return the libraries commlens-run finds, by family."""
    folder = runner.resolve().parent
    found: dict[str, Path] = {}
    for family in TITLES:
        for place in PLACES:
            path = folder / place.format(family) / LIBRARY
            if path.exists():
                found.setdefault(family, path.resolve())
    return found


def examine(given: str | None, env: Mapping[str, str], loader: Loader) -> tuple[list[Finding], Install]:
    """Return the findings, and the installed parts."""
    runner = find_runner(given, env)
    if runner is None:
        text = f"{given}: missing, or not executable" if given else "commlens-run not found"
        advice = "run make install and add its bin folder to PATH, or name commlens-run with --runner"
        return [problem("commlens-run", text, advice)], Install(None)
    install = Install(runner, find_libraries(runner))
    found = [ok("commlens-run", f"{runner}")]
    if not install.libraries:
        found.append(
            problem("library", f"no {LIBRARY} beside {runner}", "run make build, or reinstall commlens")
        )
    for family, path in install.libraries.items():
        found.append(look_at_library(family, path, loader))
    return found, install


def look_at_library(family: str, path: Path, loader: Loader) -> Finding:
    """Load a commlens library into a Python process, and check its version."""
    check = f"library {family}"
    if any(c in str(path) for c in " :"):
        return problem(
            check,
            f"{path}: the loader accepts no path that contains a space or a colon",
            "install it elsewhere",
        )
    missing = [one.name for one in loader.load(path) if one.path is None]
    if missing:
        return problem(
            check,
            f"{path} needs {', '.join(missing)}, which is not found here",
            "build commlens on this system",
        )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ASK_VERSION],
        env={"LD_PRELOAD": str(path)},
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        check=False,
    )
    if "cannot be preloaded" in done.stderr or "GLIBC" in done.stderr:
        reason = done.stderr.strip().splitlines()[0].removeprefix("ERROR: ")
        return problem(check, reason, "build commlens on this system")
    if done.returncode:
        return warning(check, f"{path}: this Python could not read its version")
    theirs, ours = done.stdout.strip(), version("commlens")
    if theirs != ours:
        return warning(
            check, f"{path} has version {theirs}, this command {ours}", "install both from the same release"
        )
    return ok(check, f"{TITLES[family]}, version {theirs}: {path}")
