# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of the wheels, from the facts of the repository.  tests/wheels looks at it in the wheels."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def bill(root: Path) -> dict[str, Any]:
    """Return what tools/sbom.py of a checkout prints for the reader."""
    done = subprocess.run(
        [sys.executable, root / "tools/sbom.py"], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_it_names_the_code_of_others_in_the_bundle() -> None:
    (part,) = bill(ROOT)["components"]
    pinned = json.loads((ROOT / "page" / "package.json").read_text())["devDependencies"]["sql.js"]
    assert (part["name"], part["version"], part["purl"]) == ("sql.js", pinned, f"pkg:npm/sql.js@{pinned}")
    assert len(bytes.fromhex(part["hashes"][0]["content"])) == 64
    (inside,) = part["components"]
    assert (inside["name"], inside["bom-ref"]) == ("SQLite", f"sql.js/SQLite@{inside['version']}")
    assert re.fullmatch(r"3\.\d+\.\d+", inside["version"])
    assert f":{inside['version']}:" in inside["cpe"]


def test_it_is_the_same_every_time_and_in_every_folder(tmp_path: Path) -> None:
    for name in ("VERSION", "page/package-lock.json", "python/commlens/page/_sqlite.js", "tools/sbom.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    assert bill(tmp_path) == bill(ROOT)
    (tmp_path / "VERSION").write_text("7.8.9\n")
    assert bill(tmp_path)["metadata"]["component"]["purl"] == "pkg:pypi/commlens@7.8.9"
