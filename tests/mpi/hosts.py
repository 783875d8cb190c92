# SPDX-License-Identifier: Apache-2.0
"""Several hosts on one machine: a host is a name and a /dev/shm of its own, and ranks get there by a remote shell.

The remote shell is a script that enters namespaces in place of a network, and, like the real one, leaves the environment
behind.  The launcher itself runs on the first host, as it does in a batch job.  What ranks send to each other goes
through the loopback device; tools/hosts.sh has a network for each host.
"""

from __future__ import annotations

import functools
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from harness import Mpi
from launches import LAUNCH_MARK, RANKS, Result, launch

# Namespaces of one's own need rights, or a user namespace in which one has them.
_UNSHARE = ["unshare", "--uts", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]

_ENTER = """\
#!/bin/sh
# enter HOST COMMAND...
host=$1
shift
exec {unshare} sh -c 'hostname "$0" && mount --bind {where}/"$0" /dev/shm && {more}exec "$@"' "$host" "$@"
"""

_CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"

_REMOTE_SHELL = """\
#!/bin/sh
# [OPTION]... HOST LINE...
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1
shift
exec env -i PATH="$PATH" HOME="$HOME" {mark}="${{{mark}:-}}" {where}/enter "$host" sh -c "$*"
"""


@functools.cache
def refusal() -> str:
    """Return the reason why this machine cannot simulate hosts, or an empty text."""
    script = "hostname elsewhere && mount --bind /tmp /dev/shm"
    done = subprocess.run(
        [*_UNSHARE, "sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    return "" if done.returncode == 0 else done.stderr.strip()


class Hosts:
    """Hosts h1p9, h2p9, ... with `ranks` ranks on each.

    Attributes
    ----------
    names : of the hosts; the number after the p is that of this process, because launchers keep files in folders that
        are called after the host, and remove them
    shared_memory : what is /dev/shm on each, by name
    without_tsc : whether the kernel of each says that the processor's counter is no clock
    """

    def __init__(self, where: Path, count: int, ranks: int, *, without_tsc: bool = False) -> None:
        if refusal():
            pytest.skip(f"hosts need namespaces, which are not permitted here: {refusal()}")
        where.mkdir(exist_ok=True)
        self.names = [f"h{number}p{os.getpid()}" for number in range(1, count + 1)]
        self.ranks = ranks
        self.shared_memory = {name: where / name for name in self.names}
        for path in self.shared_memory.values():
            path.mkdir()
        self._enter = where / "enter"
        self._remote_shell = where / "remote-shell"
        more = ""
        if without_tsc:
            (where / "clocks").write_text("hpet acpi_pm\n")
            more = f"mount --bind {shlex.quote(str(where))}/clocks {_CLOCKS} && "
        places = {
            "where": shlex.quote(str(where)),
            "unshare": shlex.join(_UNSHARE),
            "mark": LAUNCH_MARK,
            "more": more,
        }
        for path, text in ((self._enter, _ENTER), (self._remote_shell, _REMOTE_SHELL)):
            path.write_text(text.format(**places))
            path.chmod(0o755)

    @property
    def size(self) -> int:
        """How many ranks there are in all."""
        return len(self.names) * self.ranks

    def host_of(self, rank: int) -> str:
        """Return the name of a rank's host."""
        return self.names[rank // self.ranks]

    def on_first(self, line: str) -> list[str]:
        """Return the command line that runs a line of a shell on the first host."""
        return [str(self._enter), self.names[0], "sh", "-c", line]

    @property
    def reached(self) -> dict[str, str]:
        """Variables by which all launchers get to the hosts, for command lines that say nothing about that."""
        shell = str(self._remote_shell)
        return {
            "OMPI_MCA_plm_rsh_agent": shell,
            "OMPI_MCA_oob_tcp_if_include": "lo",
            "PRTE_MCA_plm_ssh_agent": shell,
            "HYDRA_LAUNCHER": "ssh",
            "HYDRA_LAUNCHER_EXEC": shell,
            "HYDRA_IFACE": "lo",
            "I_MPI_HYDRA_BOOTSTRAP": "ssh",
            "I_MPI_HYDRA_BOOTSTRAP_EXEC": shell,
            "I_MPI_HYDRA_IFACE": "lo",
        }

    def prepare(
        self,
        mpi: Mpi,
        argv: Sequence[str | Path],
        env: Mapping[str, str],
        profile: Path,
        mode: str = "run",
        launcher_args: Sequence[str] = (),
        preload: Sequence[Path] = (),
    ) -> tuple[list[str], dict[str, str]]:
        """Return the command line and the environment of a launch on all hosts; see Mpi.prepare."""
        places = ",".join(f"{name}:{self.ranks}" for name in self.names)
        if mpi.hydra:
            how = ["-launcher", "ssh", "-launcher-exec", str(self._remote_shell)]
            how += ["-localhost", "127.0.0.1", "-hosts", places]
            network = {"UCX_NET_DEVICES": "lo"}
        else:
            is_4 = mpi.is_open_mpi_4
            how = ["--mca", "plm_rsh_agent"] if is_4 else ["--prtemca", "plm_ssh_agent"]
            how += [str(self._remote_shell), "--map-by", f"ppr:{self.ranks}:node", "--host", places]
            network = {
                "OMPI_MCA_btl": "self,vader,tcp" if is_4 else "self,sm,tcp",
                "OMPI_MCA_btl_tcp_if_include": "lo",
                "OMPI_MCA_oob_tcp_if_include": "lo",
            }
        command, environment = mpi.prepare(
            self.size,
            argv,
            {**network, **env},
            profile,
            mode,
            launcher_args=[*how, *launcher_args],
            preload=preload,
        )
        return [str(self._enter), self.names[0], *command], environment


def run_on(
    mpi: Mpi,
    hosts: Hosts,
    *argv: str | Path,
    env: Mapping[str, str] | None = None,
    mode: str = "run",
    preload: Sequence[Path] = (),
    everywhere: Mapping[str, str] | None = None,
) -> Result:
    """Run a program on all hosts.

    everywhere : variables of the environment that the launcher takes to all hosts; `env` is that of the launcher
    """
    where = mpi.fresh("hosts")
    profile = where / "profile.db"
    apart = ["-outfile-pattern", str(where / RANKS / "%g.%r")] if mpi.hydra else []
    for name, value in (everywhere or {}).items():
        apart += ["-genv", name, value] if mpi.hydra else ["-x", f"{name}={value}"]
    command, environment = hosts.prepare(mpi, argv, env or {}, profile, mode, apart, preload)
    return launch((command, environment), None, 60, where, profile)
