# SPDX-License-Identifier: Apache-2.0
"""Fetches the source of each tool and application at its commit and builds it for both MPI libraries."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.peers import applications, places
from bench.peers.results import Store
from bench.peers.sources import Source
from bench.peers.tools import MPIS, PEERS

SECONDS = 3600
PART = "build"
ALL: tuple[Source, ...] = (*PEERS, *applications.SOURCES)


class NoSourceError(Exception):
    """The source of a tool cannot be had."""


def git(*words: str | Path, folder: Path | None = None, log: Path | None = None) -> None:
    """Run git.

    Raises
    ------
    NoSourceError
        It failed.
    """
    command = ["git", *(["-C", str(folder)] if folder else []), *map(str, words)]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=1800)
    if log:
        with log.open("a") as file:
            file.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}")
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise NoSourceError(lines[-1] if lines else f"git ended with {done.returncode}")


def fetch(peer: Source, mpi: str, copies: Path | None, log: Path) -> Path:
    """Return a fresh checkout of the pinned commit, from a folder with copies or from the network."""
    target = places.SOURCES / f"{peer.name}-{mpi}"
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    if copies is not None:
        origin = copies / peer.folder
        if not (origin / ".git").exists() and not (origin / "HEAD").exists():
            raise NoSourceError(
                f"the folder of copies has no {peer.folder}: git clone {peer.repository} there"
            )
        git("clone", "--quiet", "--no-checkout", "--shared", origin.absolute(), target, log=log)
    else:
        git("clone", "--quiet", "--no-checkout", peer.repository, target, log=log)
    git("-c", "advice.detachedHead=false", "checkout", "--quiet", peer.commit, folder=target, log=log)
    if peer.with_submodules:
        git("submodule", "--quiet", "update", "--init", "--depth", "1", folder=target, log=log)
    return target


def why_failed(text: str) -> str:
    r"""Return the line of a build's output that says best why it failed.

    >>> why_failed("gcc -c a.c\na.c:1: error: no such type\nmake: *** [a.o] Error 1")
    'a.c:1: error: no such type'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for pattern in (r"\berror:", r"\bERROR\b", r"Error\b", r"cannot|not found|undefined"):
        for line in lines:
            if re.search(pattern, line) and not line.startswith("make"):
                return line[:200]
    return lines[-1][:200] if lines else "no output"


def version(peer: Source) -> str:
    """Return what a build depends on."""
    return f"{peer.commit[:12]}-{hashlib.sha256(repr(peer.steps).encode()).hexdigest()[:8]}"


def build(peer: Source, mpi: str, copies: Path | None, store: Store) -> bool:
    """Build one tool for one MPI library and keep the outcome; return whether its source was there."""
    places.LOGS.mkdir(parents=True, exist_ok=True)
    log = places.LOGS / f"{peer.name}-{mpi}.log"
    log.write_text("")
    key = (peer.name, mpi)
    try:
        source = fetch(peer, mpi, copies, log)
    except NoSourceError as error:
        store.put(key, version(peer), outcome="no source", why=places.name_folders(str(error)))
        return False
    prefix = peer.prefix(mpi)
    shutil.rmtree(prefix, ignore_errors=True)
    for step in peer.steps:
        command = step.format(mpi=mpi, prefix=prefix, jobs=os.cpu_count() or 1)
        with log.open("a") as file:
            file.write(f"$ {command}\n")
            file.flush()
            begin = file.tell()
            try:
                done = subprocess.run(
                    ["bash", "-c", command], cwd=source, stdin=subprocess.DEVNULL, stdout=file,
                    stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
                )  # fmt: skip
                code = done.returncode
            except subprocess.TimeoutExpired:
                code = 124
        if code != 0:
            said = log.read_bytes()[begin:].decode(errors="replace")
            store.put(key, version(peer), outcome="failed", command=step.format(mpi=mpi, prefix="PREFIX", jobs=2),
                      why=places.name_folders(why_failed(said)))  # fmt: skip
            return True
    library = peer.built(mpi)
    if library is None:
        store.put(
            key,
            version(peer),
            outcome="failed",
            command=peer.steps[-1],
            why=f"no {peer.product} was installed",
        )
    else:
        shutil.rmtree(source)
        store.put(key, version(peer), outcome="built", library=library.name)
    return True


def build_all(copies: Path | None, names: Sequence[str], mpis: Sequence[str], *, again: bool = False) -> None:
    """Build what is not built yet; end the command if no source at all is there."""
    store = Store(PART)
    had_source = False
    wanted = [
        (peer, mpi)
        for peer in ALL
        if peer.name in names
        for mpi in mpis
        if again or not (store.has((peer.name, mpi), version(peer)) and peer.built(mpi))
    ]
    for peer, mpi in wanted:
        print(f"build    {peer.name} with {MPIS[mpi]}", flush=True)
        had_source |= build(peer, mpi, copies, store)
        found = store.get(peer.name, mpi) or {}
        if found["outcome"] != "built":
            print(f"         {found['outcome']}: {found['why']}", flush=True)
    is_any_built = any(peer.built(mpi) for peer in ALL for mpi in mpis)
    if wanted and not had_source and not is_any_built:
        folders = ", ".join(peer.folder for peer in ALL if peer.name in names)
        sys.exit(
            f"no source of another tool or application can be fetched from here: git clone {folders} from their repositories "
            "(bench/peers/tools.py, applications.py) into one folder DIR where there is a network, and run make peers PEERS=DIR"
        )
