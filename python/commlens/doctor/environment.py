# SPDX-License-Identifier: Apache-2.0
"""Settings, launcher variables, other tools in LD_PRELOAD, the place for the profile, the clock."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from commlens.base.processor import processor
from commlens.base.users import name_of
from commlens.doctor._launchers import NODE_VARIABLES
from commlens.doctor.command import CONTAINERS, Command
from commlens.doctor.families import family_of_launcher
from commlens.doctor.finding import Finding, ok, problem, warning
from commlens.launch._options import OPTIONS
from commlens.launch.configuration import is_null_device
from commlens.launch.settings import NO, read_settings

FIELDS = "phjnuYmd%"  # after a percent sign in COMMLENS_OUTPUT
LEAST_SPACE = 16 << 20  # bytes; a profile of a large job
# Tools that measure MPI as well, by the names of their libraries.
TOOLS = re.compile(
    r"lib(mpiP|scorep|darshan|VT|vt-|tau|TAU|extrae|mpitrace|ipm|map-sampler|allinea|caliper|mpitracer|hpcrun|hpctoolkit"
    r"|VampirTrace|dimemas|pilgrim|recorder)[\w.-]*\.so"
)
CLOCKS = Path("/sys/devices/system/clocksource/clocksource0/available_clocksource")
CPUS = Path("/proc/cpuinfo")


def examine(env: Mapping[str, str], folder: Path) -> list[Finding]:
    """Return the findings about an environment; `folder` is the working directory of the program."""
    values, complaints = read_settings(env)
    found = [warning("settings", *complaint) for complaint in complaints]
    found = found or [ok("settings", settings_text(env))]
    if values["COMMLENS_ENABLE"] in NO:
        found.append(problem("settings", "commlens is switched off", "unset COMMLENS_ENABLE, or set it to 1"))
    share = values["COMMLENS_SAMPLE"]
    if float(share) < 1:
        found.append(
            warning(
                "settings", f"{share} of the jobs are measured, perhaps not this one", "set COMMLENS_SAMPLE=1"
            )
        )
    return [*found, *preloads(env), *output(values["COMMLENS_OUTPUT"], env, folder), clock()]


def settings_text(env: Mapping[str, str]) -> str:
    """Return the settings that are not the defaults."""
    given = [f"{name}={env[name]}" for name in OPTIONS if name in env]
    return ", ".join(given) or "all settings have their defaults"


def preloads(env: Mapping[str, str]) -> list[Finding]:
    """Return findings about the other libraries in LD_PRELOAD."""
    found = []
    for path in env.get("LD_PRELOAD", "").replace(":", " ").split():
        name = Path(path).name
        if name == "libcommlens.so":
            continue
        if "/" in path and not Path(path).exists():
            found.append(
                warning(
                    "preload", f"LD_PRELOAD names {path}, which does not exist", "remove it from LD_PRELOAD"
                )
            )
        elif TOOLS.match(name):
            found.append(
                warning(
                    "preload",
                    f"{name} also measures MPI: both tools see every call, and the times of each include the other",
                    "for exact times, remove it from LD_PRELOAD",
                )
            )
        else:
            found.append(ok("preload", f"{path} stays in LD_PRELOAD, after commlens"))
    return found


def writable(folder: Path) -> str | None:
    """Return the reason why no profile can be written to a folder, or None."""
    if not folder.is_dir():
        return "is not a directory" if folder.exists() else "does not exist"
    if not os.access(folder, os.W_OK | os.X_OK):
        return "is not writable"
    free = shutil.disk_usage(folder).free
    return f"has only {free >> 20} MiB left" if free < LEAST_SPACE else None


def is_suspect(target: Path, facts: os.stat_result) -> bool:
    """Return whether another user may have created a link or folder to redirect output (see core/out/files.cpp)."""
    is_way = stat.S_ISLNK(facts.st_mode) or stat.S_ISDIR(facts.st_mode)
    if not is_way or facts.st_uid in (0, os.geteuid()):
        return False
    return bool(target.parent.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def no_file(target: Path, env: Mapping[str, str]) -> Finding | None:
    """Return a warning if the path of the profile exists and is neither a file nor a folder."""
    try:
        facts = target.lstat()
        if is_suspect(target, facts):
            return warning(
                "output",
                f"{target} belongs to {name_of(facts.st_uid)}, in a folder to which other users may write: the profile "
                "is written beside it",
                "set COMMLENS_OUTPUT; a / at its end makes it a folder",
            )
        facts = target.stat()
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode):
        return None
    if is_null_device(facts):
        return warning("output", f"{target} is /dev/null: no profile is written", "set COMMLENS_OUTPUT")
    second = env.get("TMPDIR") or "/tmp"
    return warning(
        "output",
        f"{target} is neither a file nor a folder: the profile would be written to {second} on the node of rank 0",
        "set COMMLENS_OUTPUT",
    )


def output(pattern: str, env: Mapping[str, str], folder: Path) -> list[Finding]:
    """Return findings about the path of the profile."""
    found = []
    strange = sorted({field for field in re.findall(r"%(.?)", pattern) if field not in FIELDS or not field})
    if strange:
        found.append(
            warning(
                "output",
                f"COMMLENS_OUTPUT: {', '.join('%' + field for field in strange)} is not replaced",
                "use %p, %h, %j, %n, %u, %Y, %m, %d or %%",
            )
        )
    target = folder / (pattern or OPTIONS["COMMLENS_OUTPUT"].default)
    special = None if pattern.endswith("/") else no_file(target, env)
    if special is not None:
        return [*found, special]
    where = target if pattern.endswith("/") or target.is_dir() else target.parent
    if "%" in str(where):  # commlens makes these folders
        where = next(parent for parent in where.parents if "%" not in str(parent))
    why = writable(where)
    if why is None:
        return [*found, ok("output", f"{target}")]
    second = Path(env.get("TMPDIR") or "/tmp")
    if writable(second) is None:
        advice = "set COMMLENS_OUTPUT"
        return [
            *found,
            warning(
                "output",
                f"{where} {why}: the profile would be written to {second} on the node of rank 0",
                advice,
            ),
        ]
    return [
        *found,
        problem(
            "output",
            f"{where} {why}, and the profile cannot be written to {second} either",
            "set COMMLENS_OUTPUT",
        ),
    ]


def clock() -> Finding:
    """Return a finding about the clock."""
    if not processor().has_assembly:
        return warning(
            "clock",
            f"clock_gettime, because commlens has no assembly for {processor().name}: each call costs more, "
            "and has no call path",
        )
    if processor().name != "x86_64":
        return ok("clock", "the counter of the processor")
    try:
        names = CLOCKS.read_text().split()
    except OSError:
        names = ["tsc"]
    try:
        flags = re.search(r"^flags\s*:(.*)$", CPUS.read_text(), re.MULTILINE)
    except OSError:
        flags = None
    if flags and "constant_tsc" in flags[1].split() and "nonstop_tsc" in flags[1].split() and "tsc" in names:
        return ok("clock", "the time stamp counter of the processor")
    return warning(
        "clock", "clock_gettime, because the time stamp counter is not constant here: each call costs more"
    )


def names_other_hosts(options: Sequence[str]) -> bool:
    """Return whether options of a launcher name hosts beside this one, or a file with hosts.

    >>> names_other_hosts(["--host", "localhost:4"]), names_other_hosts(["-H", "a,b"]), names_other_hosts(["-hostfile", "f"])
    (False, True, True)
    """
    for option, value in zip(options, [*options[1:], ""]):
        name, _, written = option.partition("=")
        if name.lstrip("-") in ("hostfile", "machinefile"):
            return True
        if name in ("-H", "-host", "--host", "-hosts"):
            hosts = {host.partition(":")[0] for host in (written or value).split(",")}
            if not hosts <= {"localhost", "127.0.0.1", socket.gethostname()}:
                return True
    return False


def launch(command: Command) -> list[Finding]:
    """Return findings about the launcher: environment that it does not pass on, and commands before the program."""
    env, options = command.env, command.launcher_options
    found: list[Finding] = []
    name = Path(command.launcher or "").name
    if command.dropped:
        found.append(
            problem(
                "launch",
                f"{command.dropped} after commlens-run removes LD_PRELOAD",
                "put commlens-run after it, directly before the program",
            )
        )
    ours = sorted(n for n in env if n.startswith("COMMLENS_"))
    given = next((o for o in reversed(options) if o.startswith("--export")), "")
    export = given.partition("=")[2] or (env.get("SLURM_EXPORT_ENV", "") if name in ("", "srun") else "")
    drops_all = any(option in ("-envnone", "-genvnone") for option in options)
    if drops_all or (export and "ALL" not in export.split(",")):
        what = given or (f"SLURM_EXPORT_ENV={export}" if not drops_all else "-genvnone")
        passed = export.split(",")
        lost = [n for n in ours if n not in passed]
        if (
            command.runner is None
            and "libcommlens.so" in env.get("LD_PRELOAD", "")
            and "LD_PRELOAD" not in passed
        ):
            found.append(
                problem("launch", f"{what}: LD_PRELOAD does not reach the ranks", "use commlens-run")
            )
        elif lost:
            advice = "srun --export=ALL" if not drops_all else "omit that option"
            found.append(warning("launch", f"{what}: {', '.join(lost)} will not reach the ranks", advice))
        else:
            found.append(ok("launch", f"{what}, but commlens-run needs nothing from the environment"))
    nodes = [env.get(n, "1") for n in NODE_VARIABLES]
    several = any(n.isdigit() and int(n) > 1 for n in nodes) or names_other_hosts(options)
    launcher = shutil.which(command.launcher or "", path=env.get("PATH"))
    is_open_mpi = launcher is not None and family_of_launcher(str(Path(launcher).resolve())) == "openmpi"
    if several and ours and is_open_mpi and name.startswith(("mpirun", "mpiexec", "orterun")):
        given_names = {option.partition("=")[0] for option in options}
        lost = [n for n in ours if n not in given_names]
        if lost:
            found.append(
                warning(
                    "launch",
                    f"Open MPI's {name} passes {', '.join(lost)} only to ranks on this node",
                    " ".join(f"-x {n}" for n in lost),
                )
            )
    program = Path(command.program[0]).name if command.program else ""
    if program in CONTAINERS:
        found.append(
            problem(
                "launch",
                f"{program} starts the program in a container, which has its own libraries",
                f"bind commlens into the container and run commlens-run inside it: {program} exec -B … image commlens-run ./app",
            )
        )
    return found
