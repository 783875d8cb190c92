# SPDX-License-Identifier: Apache-2.0
"""Finds shared objects as the dynamic loader would, without running anything (man 8 ld.so)."""

from __future__ import annotations

import shutil
import subprocess
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from commlens.base.processor import processor
from commlens.symbols.elf import Dynamic, dynamic_symbols, read_dynamic

DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")


@dataclass
class Object:
    """A file that the loader would map, or a name that it would not find."""

    name: str
    path: Path | None
    dynamic: Dynamic | None
    by: str  # which file asks for it
    rpath: tuple[str, ...] = ()  # of the objects that led here
    _symbols: tuple[set[str], set[str]] | None = field(default=None, repr=False)

    @property
    def defines(self) -> set[str]:
        """Names that this file exports."""
        return self._read()[0]

    @property
    def imports(self) -> set[str]:
        """Names that this file imports."""
        return self._read()[1]

    def _read(self) -> tuple[set[str], set[str]]:
        if self._symbols is None:
            self._symbols = dynamic_symbols(self.path) if self.path else (set(), set())
        return self._symbols


class Loader:
    """The search for shared objects in one environment."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.library_path = [part or "." for part in env.get("LD_LIBRARY_PATH", "").split(":") if part]
        self.preloads = env.get("LD_PRELOAD", "").replace(":", " ").split()

    @cached_property
    def cache(self) -> dict[str, str]:
        """The cache of ldconfig: name -> path."""
        tool = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin")
        if tool is None:
            return {}
        done = subprocess.run(
            [tool, "-p"], capture_output=True, encoding="utf-8", errors="surrogateescape", check=False
        )
        known: dict[str, str] = {}
        for line in done.stdout.splitlines():
            name, arrow, path = line.strip().partition(" => ")
            if arrow and processor().mark in name:
                known.setdefault(name.split()[0], path)
        return known

    def find(self, name: str, asking: Object) -> Path | None:
        """Return the file the loader takes for a name that `asking` needs."""
        if "/" in name:
            return Path(name) if Path(name).exists() else None
        own = asking.dynamic
        runpath = own.runpath if own else ()
        folders = [*(() if runpath else asking.rpath), *self.library_path, *self._folders(runpath, asking)]
        for folder in folders:
            if self._fits(Path(folder) / name):
                return Path(folder) / name
        if name in self.cache:
            return Path(self.cache[name])
        for folder in DEFAULT_FOLDERS:
            if self._fits(Path(folder) / name):
                return Path(folder) / name
        return None

    def load(self, path: Path, by: str = "") -> list[Object]:
        """Return a file and all its dependencies, in the order of the loader."""
        first = Object(path.name, path, read_dynamic(path), by)
        first.rpath = self._folders(first.dynamic.rpath if first.dynamic else (), first)
        loaded, waiting, known = [first], deque([first]), {path.name}
        while waiting:
            asking = waiting.popleft()
            for name in asking.dynamic.needed if asking.dynamic else ():
                if name in known:
                    continue
                known.add(name)
                found = self.find(name, asking)
                dynamic = read_dynamic(found) if found else None
                one = Object(name, found, dynamic, asking.name)
                one.rpath = (*self._folders(dynamic.rpath if dynamic else (), one), *asking.rpath)
                loaded.append(one)
                waiting.append(one)
        return loaded

    @staticmethod
    def _folders(folders: tuple[str, ...], of: Object) -> tuple[str, ...]:
        origin = str(of.path.resolve().parent) if of.path else ""
        return tuple(f.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for f in folders)

    @staticmethod
    def _fits(path: Path) -> bool:
        dynamic = read_dynamic(path) if path.exists() else None
        return dynamic is not None and dynamic.wide
