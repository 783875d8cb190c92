# SPDX-License-Identifier: Apache-2.0
"""Two users who do not trust each other, and root, on a machine of their own.

    with strangers() as place:
        place.run("mallory", ["ln", "-s", "/etc", place.shm / "commlens-arenas-x"])
        done = place.commlens("root", "clean", "--yes")

The machine is a mount, process and IPC namespace: /dev/shm and /tmp are empty, every user has a home of mode 0700, and
alice and mallory are in /etc/passwd, there only.  All that runs in it ends with it, also when the tests are killed.
What the users run is bound to the same path, read-only: the checkout's build and Python packages may lie in a folder
that is closed to them, such as /root.

Kernels protect users who follow links, or open FIFOs, of others in sticky folders that everybody may write to:
fs.protected_symlinks, protected_hardlinks, protected_fifos and protected_regular.  They hold for the whole machine,
its other users included, so that nothing here changes them; but our rules must hold without them.  A test that plants
something therefore plants it in `project` as well, a folder that only a group may write to: there none of the first
three applies.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from build_once import PATIENCE
from harness import BUILD, ROOT, Mpi
from launches import called_unloaded
from profile_rows import Profile

USERS = {"root": 0, "alice": 54321, "mallory": 54322}
"""User and group ids; alice and mallory are in the group `project`, too."""
PROJECT = 54320

_UNSHARE = ["unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"]
_TOP = Path("/tmp/strangers")
# Arguments: folders that are needed, "--", folders that an empty one covers.  Ends when its standard input does.
_SETUP = """\
set -eu
umask 022
mount -t tmpfs -o mode=1777 strangers /dev/shm
stage=/dev/shm/stage
mkdir $stage
number=0
while [ "$1" != -- ]; do
  mkdir $stage/$number
  mount --rbind "$1" $stage/$number
  printf '%s\\n' "$1" >$stage/$number.path
  number=$((number + 1))
  shift
done
shift
for covered; do
  mount -t tmpfs -o mode=755 strangers "$covered"
done
while [ $number -gt 0 ]; do
  number=$((number - 1))
  path=$(cat $stage/$number.path)
  mkdir -p "$path"
  mount --rbind $stage/$number "$path"
  mount -o remount,bind,ro "$path"
  umount --recursive --lazy $stage/$number
done
rm -r $stage
chmod 1777 /tmp
mkdir -p {top} {top}/etc {top}/home {top}/shared {top}/project
for file in passwd group; do
  grep -vE '^(alice|mallory|project):' /etc/$file >{top}/etc/$file || true
done
mkdir -m 700 {top}/home/root
{users}
echo 'project:x:{project}:alice,mallory' >>{top}/etc/group
chown 0:{project} {top}/project
chmod 3770 {top}/project
chmod 1777 {top}/shared
mount --bind {top}/etc/passwd /etc/passwd
mount --bind {top}/etc/group /etc/group
trap '' CHLD # nobody else waits for what is left behind
echo ready
exec cat >/dev/null
"""
_USER = """\
echo '{name}:x:{number}:{number}::{top}/home/{name}:/bin/sh' >>{top}/etc/passwd
echo '{name}:x:{number}:' >>{top}/etc/group
mkdir -m 700 {top}/home/{name}
chown {number}:{number} {top}/home/{name}
"""


def _setup() -> str:
    """Return the script that furnishes the machine."""
    users = [
        _USER.format(name=name, number=number, top=_TOP) for name, number in USERS.items() if number != 0
    ]
    return _SETUP.format(top=_TOP, users="".join(users), project=PROJECT)


def _closed(path: Path) -> Path | None:
    """Return the topmost folder above `path` that others cannot pass through."""
    return next(
        (p for p in reversed(path.parents) if not p.stat().st_mode & stat.S_IXOTH and p != Path("/")), None
    )


def _layout(needed: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the folders to bind, each once, and those to cover."""
    real = sorted({path.resolve() for path in needed})
    bound = [path for path in real if not set(path.parents) & set(real)]
    for path in bound:
        if stat.S_IMODE(path.stat().st_mode) & 0o005 != 0o005:
            pytest.fail(f"{path} is closed to other users, who must run what is in it: chmod -R go+rX {path}")
    covered = {Path("/tmp"), *filter(None, map(_closed, bound))}
    return bound, sorted(path for path in covered if not set(path.parents) & covered)


class Strangers:
    """The machine, see the top of this file.

    Attributes
    ----------
    shm : /dev/shm
    shared : folder of root, mode 1777
    project : folder of root and the group `project`, mode 3770
    homes : by user
    python : the one that runs the tests
    """

    def __init__(self, process: subprocess.Popen[bytes], copies: Path) -> None:
        self._process = process
        self._copies = copies
        self.python = Path(sys.prefix).resolve() / "bin" / "python"
        self.shm = Path("/dev/shm")
        self.shared = _TOP / "shared"
        self.project = _TOP / "project"
        self.homes = {user: _TOP / "home" / user for user in USERS}

    def outside(self, path: str | Path) -> Path:
        """Return the name by which the test itself, as root, reaches a path of the machine.

        Not for what is behind an absolute symbolic link.
        """
        return Path(f"/proc/{self._process.pid}/root") / str(path).lstrip("/")

    def command(self, user: str, argv: Sequence[str | Path], cwd: str | Path | None = None) -> list[str]:
        """Return the command line that runs `argv` there as `user`."""
        names = f"/proc/{self._process.pid}/ns"
        enter = ["nsenter", f"--mount={names}/mnt", f"--ipc={names}/ipc", f"--pid={names}/pid_for_children"]
        number = USERS[user]
        become = ["setpriv", f"--reuid={number}", f"--regid={number}", "--init-groups"]
        start = ["sh", "-c", 'umask 022 && cd "$0" && exec "$@"', str(cwd or self.homes[user])]
        return [*enter, *become, *start, *map(str, argv)]

    def environment(self, user: str, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of a user, with `env`."""
        return {
            "PATH": f"{BUILD.resolve() / 'bin'}:{self.python.parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self.homes[user]),
            "USER": user,
            "LOGNAME": user,
            "PYTHONPATH": str((ROOT / "python").resolve()),
            "PYTHONDONTWRITEBYTECODE": "1",
            **(env or {}),
        }

    def run(
        self,
        user: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        timeout: float = 60,
        given: bytes = b"",
    ) -> subprocess.CompletedProcess[str]:
        """Run a command, with `given` as its standard input, and wait for its end."""
        done = subprocess.run(
            self.command(user, argv, cwd),
            env=self.environment(user, env),
            cwd="/",
            timeout=timeout * PATIENCE,
            capture_output=True,
            check=False,
            input=given,
        )
        text = (done.stdout.decode(errors="surrogateescape"), done.stderr.decode(errors="surrogateescape"))
        return subprocess.CompletedProcess(done.args, done.returncode, *text)

    def do(self, user: str, line: str, *arguments: str | Path) -> str:
        """Run a shell command with arguments $1 and so on, which must succeed; return its output."""
        done = self.run(user, ["sh", "-euc", line, "sh", *arguments])
        assert done.returncode == 0, f"{user}: {line}: {done.stderr}"
        return done.stdout

    def write(self, user: str, path: str | Path, content: bytes | str, mode: int = 0o644) -> None:
        """Write a file as `user`, with its rights."""
        given = content.encode() if isinstance(content, str) else content
        done = self.run(
            user, ["sh", "-euc", 'cat >"$1"; chmod "$2" "$1"', "sh", path, f"{mode:o}"], given=given
        )
        assert done.returncode == 0, f"{user}: {path}: {done.stderr}"

    def read(self, path: str | Path) -> bytes:
        """Return the content of a file."""
        return self.outside(path).read_bytes()

    def profile(self, path: str | Path) -> Profile:
        """Open a copy of a profile: SQLite would follow the link in the name that it has outside."""
        copy = Path(tempfile.mkdtemp(dir=self._copies), "profile.db")
        shutil.copy(self.outside(path), copy)
        return Profile(copy)

    def owner(self, path: str | Path) -> str:
        """Return whose a file is, links not followed."""
        number = self.outside(path).lstat().st_uid
        return next((user for user, known in USERS.items() if known == number), str(number))

    def listing(self, folder: str | Path) -> dict[str, tuple[str, int, bytes]]:
        """Return all below a folder: by path its owner, its mode, and its content or where it points to."""
        top = self.outside(folder)
        found = {}
        for path in sorted(top.rglob("*")):
            facts = path.lstat()
            content = b""
            if path.is_symlink():
                content = os.fsencode(path.readlink())
            elif stat.S_ISREG(facts.st_mode):
                content = path.read_bytes()
            found[str(path.relative_to(top))] = (
                self.owner(folder / path.relative_to(top)),
                facts.st_mode,
                content,
            )
        return found

    def commlens(
        self, user: str, *arguments: str | Path, **options: object
    ) -> subprocess.CompletedProcess[str]:
        """Run the command of this checkout; `options` as of run()."""
        return self.run(user, [self.python, "-m", "commlens", *arguments], **options)  # type: ignore[arg-type]

    @contextmanager
    def started(
        self,
        user: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run a command in the background; its output, both kinds, is a pipe.

        At the end it is killed with all it started that kept its process group.  Its process id is not the one that it
        has on the machine: see kill().
        """
        process = subprocess.Popen(
            self.command(user, argv, cwd),
            env=self.environment(user, env),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def kill(self, *pids: int, how: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to processes, by their ids on the machine."""
        self.run("root", ["kill", f"-{how.name.removeprefix('SIG')}", *map(str, pids)])

    def prepare(
        self,
        mpi: Mpi,
        ranks: int,
        argv: Sequence[str | Path],
        profile: Path,
        env: Mapping[str, str] | None = None,
        mode: str = "run",
    ) -> tuple[list[str], dict[str, str]]:
        """Return the command line and the environment of a launch there, for run() and started(); see Mpi.prepare."""
        command, environment = mpi.prepare(ranks, argv, env, profile, mode)
        for name in ("HOME", "USER", "LOGNAME", "PATH", "PYTHONPATH", "TMPDIR", "XDG_RUNTIME_DIR"):
            if name not in (env or {}) and (name != "PATH" or environment[name] == os.environ[name]):
                environment.pop(name, None)
        return [self._brought(mpi, part) for part in command], environment

    def launch(
        self,
        user: str,
        mpi: Mpi,
        ranks: int,
        argv: Sequence[str | Path],
        profile: Path,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        mode: str = "run",
    ) -> subprocess.CompletedProcess[str]:
        """Run an MPI job as `user`, with the program argv[0] that `mpi` has compiled, and wait for its end.

        If it crashed as called_unloaded() describes, what it left in the folder of `profile` is removed and it is run again.
        """
        command, environment = self.prepare(mpi, ranks, argv, profile, env, mode)
        before = self.listing(profile.parent)
        done = self.run(user, command, env=environment, cwd=cwd)
        if called_unloaded(done.returncode, done.stderr):
            left = [profile.parent / name for name in self.listing(profile.parent) if name not in before]
            self.do("root", 'rm -rf "$@"', *left)
            done = self.run(user, command, env=environment, cwd=cwd)
        return done

    def killed_job(
        self,
        user: str,
        mpi: Mpi,
        profile: Path,
        ranks: int = 2,
        env: Mapping[str, str] | None = None,
        calls: int = 50,
    ) -> list[Path]:
        """Run a job of which SIGKILL ends all ranks after `calls` calls of MPI_Allreduce each; return its arenas."""
        folder = Path((env or {}).get("COMMLENS_ARENA_DIR", self.shm))
        known = set(self.outside(folder).glob("*.arena"))
        program: list[str | Path] = [mpi.compile("storage.c"), "work", str(calls), "kill"]
        self.launch(user, mpi, ranks, program, profile, env)
        found = sorted(set(self.outside(folder).glob("*.arena")) - known)
        assert len(found) == ranks, found
        return [folder / path.name for path in found]

    def _brought(self, mpi: Mpi, part: str) -> str:
        """Return an argument in which files of `mpi` are copies that everybody can reach."""
        for file in mpi.programs.iterdir():
            if file.is_file() and str(file) in part:
                target = self.outside(_TOP / "programs" / file.name)
                target.parent.mkdir(exist_ok=True)
                if not target.exists():  # a job may run it
                    shutil.copy(file, target)
                    target.chmod(0o755)
                part = part.replace(str(file), str(_TOP / "programs" / file.name))
        return part


def refusal() -> str:
    """Return the reason why such a machine cannot be simulated here, or an empty text."""
    if os.geteuid() != 0:
        return "two users and root need root: run the tests as root"
    done = subprocess.run([*_UNSHARE, "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"two users and root need namespaces: {done.stderr.strip()}"


@contextmanager
def strangers() -> Iterator[Strangers]:
    """Make the machine, and end all that runs there; skips where that is not permitted."""
    if refusal():
        pytest.skip(refusal())
    python = [Path(sys.prefix), Path(sys.base_prefix)]
    bound, covered = _layout(
        [ROOT / "python", ROOT / "build", BUILD, *(p for p in python if p != Path("/usr"))]
    )
    process = subprocess.Popen(
        [*_UNSHARE, "sh", "-c", _setup(), "sh", *map(str, bound), "--", *map(str, covered)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said == b"ready\n", said + process.stdout.read()
        with tempfile.TemporaryDirectory(prefix="strangers-") as copies:
            yield Strangers(process, Path(copies))
    finally:
        process.communicate()
