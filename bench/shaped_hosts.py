# SPDX-License-Identifier: Apache-2.0
"""Four hosts on one machine whose links have a set bandwidth, for measurements of real jobs over a slow network.

A host is a network namespace with a name, an address and a /dev/shm of its own. Its link to a bridge carries `rate` Mbit/s
in each direction: `tbf` limits what leaves the host, and what the bridge delivers to it. Ranks of one host use shared
memory, which nothing limits. With a delay, bench/delay.c carries the packets in place of the bridge, because kernels
without netem cannot delay them. All namespaces end with the script.

    enter_namespaces()                       # starts this script again, as process 1 of namespaces of its own
    with Hosts(folder, rate=10) as hosts:
        seconds = hosts.time(openmpi(hosts, 16, default(hosts, 4)), ["./app", "64"])

Root only. The kernel needs veth, bridge and tbf; with a delay, TUN devices and tbf.

    .venv/bin/python bench/shaped_hosts.py    # round trips between two hosts with several delays
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[1]
STOPWATCH = ROOT / "build" / "release" / "lib" / "libcommlens-stopwatch.so"
INSIDE = "SHAPED_HOSTS_INSIDE"
NETWORK = "10.77.0"
COUNT = 4
START_SECONDS = 30

# Bytes that may be sent at once after a pause, and bytes that wait: no queue overflows, so nothing is sent again.
SHAPE = "root tbf rate {rate}mbit burst 16kb limit 64mb"

HOST = """\
set -e
hostname "$1"
mount -t tmpfs tmpfs /dev/shm
mount --bind "$3/addresses" /etc/hosts
ip link set lo up
{network}
echo $$ >"$3/$1.pid.new"
mv "$3/$1.pid.new" "$3/$1.pid"
exec sleep infinity
"""

BRIDGED = """\
ip link add eth0 type veth peer name "to-$1" netns "$4"
ip address add "{network}.$2/24" dev eth0
ip link set eth0 up
{tc} qdisc add dev eth0 {shape}
nsenter --target "$4" --net sh -c "ip link set 'to-$1' master bridge up && {tc} qdisc add dev 'to-$1' {shape}"
"""

# The device is there already.
DELAYED = (
    "ip address add {network}.{number}/24 dev eth0 && ip link set eth0 up && tc qdisc add dev eth0 {shape}"
)

# Stands in for ssh: drops its options and the caller's environment, and runs a command line on a host.
REMOTE_SHELL = """\
#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1
shift
exec env -i PATH="$PATH" HOME="$HOME" {enter} --target "$(cat {folder}/"$host.pid")" sh -c "$*"
"""

ENTER = ("nsenter", "--net", "--uts", "--mount", "--ipc")


def enter_namespaces() -> None:
    """Start this script again in namespaces of its own, unless it runs there already."""
    if os.getpid() == 1 and INSIDE in os.environ:
        return
    if os.geteuid() != 0:
        sys.exit("shaped hosts need root: they are network namespaces")
    apart = ["--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]
    os.environ[INSIDE] = "yes"
    os.execvp("unshare", ["unshare", *apart, sys.executable, *sys.argv])


class Hosts:
    """Hosts h1 to h4.

    Attributes
    ----------
    folder : Path
        Scratch files; every host sees it under the same path.
    rate : float
        Bandwidth of each link in each direction, Mbit/s; 0: not limited, without a delay only.
    names : list of str
        Of the hosts.
    delay : float
        Milliseconds that a packet takes from host to host, beside the time of its length.
    """

    def __init__(self, folder: Path, rate: float, count: int = COUNT, delay: float = 0) -> None:
        self.folder = folder.resolve()
        self.rate = rate
        self.delay = delay
        self.names = [f"h{number}" for number in range(1, count + 1)]
        self.remote_shell = self.folder / "remote-shell"
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Hosts:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in self.names:
            (self.folder / f"{name}.pid").unlink(missing_ok=True)
        lines = ["127.0.0.1 localhost"]
        lines += [f"{NETWORK}.{number} {name}" for number, name in enumerate(self.names, 1)]
        source = ROOT / "bench" / "sleeping_yield.c"
        subprocess.run(
            ["cc", "-O2", "-shared", "-fPIC", source, "-o", self.folder / "sleeping_yield.so"], check=True
        )
        (self.folder / "addresses").write_text("\n".join(lines) + "\n", encoding="ascii")
        shell = REMOTE_SHELL.format(
            enter=shlex.join([*ENTER, f"--wd={ROOT}"]), folder=shlex.quote(str(self.folder))
        )
        self.remote_shell.write_text(shell, encoding="utf-8")
        self.remote_shell.chmod(0o755)
        for words in ("link set lo up", "link add bridge type bridge", "link set bridge up"):
            subprocess.run(["ip", *words.split()], check=True)
        bridged = BRIDGED.format(
            network=NETWORK, shape=SHAPE.format(rate=self.rate), tc="tc" if self.rate else ":"
        )
        script = HOST.format(network="" if self.delay else bridged)
        for number, name in enumerate(self.names, 1):
            apart = ["unshare", "--net", "--uts", "--mount", "--ipc", "sh", "-c", script, "sh"]
            given = [name, str(number), str(self.folder), str(os.getpid())]
            self._processes.append(subprocess.Popen([*apart, *given], stdin=subprocess.DEVNULL))
        until = time.monotonic() + START_SECONDS
        while not all((self.folder / f"{name}.pid").exists() for name in self.names):
            if any(process.poll() is not None for process in self._processes) or time.monotonic() > until:
                raise RuntimeError("a host did not start")
            time.sleep(0.05)
        if self.delay:
            self._carry_packets()
        return self

    def _carry_packets(self) -> None:
        """Start the network of hosts with a delay."""
        program = self.folder / "delay"
        subprocess.run(["cc", "-O2", ROOT / "bench" / "delay.c", "-o", program], check=True)
        pids = [(self.folder / f"{name}.pid").read_text(encoding="ascii").strip() for name in self.names]
        numbers = [f"{1e3 * self.delay:.0f}", f"{1e3 * self.rate:.0f}"]
        carrier = subprocess.Popen([program, *numbers, *pids], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._processes.append(carrier)
        if carrier.stdout is None or carrier.stdout.readline() != b"ready\n":
            raise RuntimeError("the hosts have no network")
        shape = SHAPE.format(rate=self.rate)
        for number, name in enumerate(self.names, 1):
            script = DELAYED.format(network=NETWORK, number=number, shape=shape)
            subprocess.run(self.on(name, ["sh", "-c", script]), check=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def on(self, name: str, command: Sequence[str | Path], folder: Path = ROOT) -> list[str]:
        """Return the command line that runs a command on a host."""
        pid = (self.folder / f"{name}.pid").read_text(encoding="ascii").strip()
        return [*ENTER, f"--wd={folder}", "--target", pid, *map(str, command)]

    def run(
        self, command: Sequence[str | Path], env: Mapping[str, str] | None = None, timeout: float = 300
    ) -> str:
        """Run a command, such as a launcher, on the first host, and return what it prints."""
        done = subprocess.run(
            self.on(self.names[0], command),
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(
                f"{shlex.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def preload(self, *more: Path) -> list[str]:
        """Return options of Open MPI's launcher: libraries for the ranks, whose waiting ranks sleep."""
        return ["-x", "LD_PRELOAD=" + ":".join(map(str, [*more, self.folder / "sleeping_yield.so"]))]

    def time(self, launcher: Sequence[str | Path], program: Sequence[str | Path]) -> float:
        """Run a job and return its seconds between MPI_Init and MPI_Finalize, of the slowest rank."""
        times = self.folder / "times"
        times.mkdir(exist_ok=True)
        for old in times.iterdir():
            old.unlink()
        measured = [*self.preload(STOPWATCH), "-x", f"STOPWATCH_OF_COMMLENS={times}"]
        self.run([*launcher, *measured, *program], OPEN_MPI)
        found = [path.read_text(encoding="ascii").split() for path in times.iterdir()]
        if not found:
            raise RuntimeError("no rank wrote its times")
        return max(int(words[1]) for words in found) / 1e9


OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,vader,tcp",
    "OMPI_MCA_btl_tcp_flags": "send",
}
"""Environment of Open MPI's launcher: more ranks than processors, and TCP between hosts.

tcp_flags: by default large messages use a protocol that leaves half of a slow link unused while both sides send.
"""


def openmpi(hosts: Hosts, ranks: int, where: Sequence[str]) -> list[str]:
    """Return the start of a command line of Open MPI 4.

    where : options of the launcher that place the ranks; default() and seq() return some
    """
    return ["mpirun.openmpi", "--mca", "plm_rsh_agent", str(hosts.remote_shell), "-np", str(ranks), *where]


def default(hosts: Hosts, per_host: int) -> list[str]:
    """Return the options of the launcher's own placement: the first ranks on the first host."""
    return ["--host", ",".join(f"{name}:{per_host}" for name in hosts.names)]


def seq(file: Path) -> list[str]:
    """Return the options for a file with the host of each rank, one a line."""
    return ["--map-by", "seq", "--hostfile", str(file), "--bind-to", "none"]


def options(description: str | None, rounds: int) -> argparse.Namespace:
    """Return the options of a measurement on these hosts; `rounds` is the usual number."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=rounds, help="at least 6")
    parser.add_argument("--rate", type=float, default=10, help="Mbit/s of a link")
    parser.add_argument("--page", action="store_true", help="write the page, in place of printing it")
    parser.add_argument("--render", action="store_true", help="write the page again, from the stored times")
    return parser.parse_args()


@contextmanager
def started(folder: Path, rate: float, compile_all: Callable[[], None]) -> Iterator[Hosts]:
    """Start hosts for the programs that `compile_all` makes, in namespaces of their own."""
    enter_namespaces()
    compile_all()
    with Hosts(folder / "hosts", rate) as hosts:
        yield hosts


def machine() -> str:
    """Return date, system and processors."""
    script = f"cd {ROOT} && . tools/page.sh && machine"
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.strip()


ECHO = """\
import socket
with socket.create_server(("", 7000)) as server:
    connection = server.accept()[0]
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := connection.recv(1):
        connection.sendall(data)
"""

ASK = """\
import socket, sys, time
while True:
    try:
        connection = socket.create_connection((sys.argv[1], 7000))
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
times = []
for _ in range(100):
    begin = time.perf_counter()
    connection.sendall(b"x")
    connection.recv(1)
    times.append(1e3 * (time.perf_counter() - begin))
times.sort()
print(f"{times[0]:.2f} {times[50]:.2f}")
"""


def round_trip(folder: Path, delay: float) -> tuple[float, float]:
    """Return the milliseconds of a round trip of one byte between two hosts: the shortest of 100, and the median."""
    with (
        Hosts(folder, 10, 2, delay) as hosts,
        subprocess.Popen(hosts.on("h2", [sys.executable, "-c", ECHO])) as server,
    ):
        shortest, median = hosts.run([sys.executable, "-c", ASK, f"{NETWORK}.2"]).split()
        server.wait(START_SECONDS)
    subprocess.run(["ip", "link", "delete", "bridge"], check=True)
    return float(shortest), float(median)


def main() -> None:
    """Print round trips with several delays: at least twice the delay."""
    enter_namespaces()
    for delay in (0, 1, 5, 20):
        shortest, median = round_trip(ROOT / "build" / "delay", delay)
        print(f"delay {delay} ms: round trip {shortest:.2f} ms, median {median:.2f} ms")


if __name__ == "__main__":
    main()
