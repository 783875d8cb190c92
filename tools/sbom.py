# SPDX-License-Identifier: Apache-2.0
"""Print the bill of materials of a wheel (CycloneDX 1.6): the code of others that is inside.

    python tools/sbom.py [--library TARGET]

Without --library it is that of the reader alone.  TARGET is what ziglang compiles for; its C++ library is linked into
commlens.  Facts come from where they are anyway: VERSION, third_party/, page/package-lock.json, the installed ziglang.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from base64 import b64decode
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNTIME = ("libc++", "libc++abi", "libunwind")
APACHE_WITH_EXCEPTION = "Apache-2.0 WITH LLVM-exception"


def component(name: str, release: str, licence: str, address: str, **more: object) -> dict[str, object]:
    """Return one component, named as its authors name it."""
    return {
        "type": "library",
        "bom-ref": f"{name}@{release}",
        "name": name,
        "version": release,
        "licenses": [{"expression": licence}],
        "externalReferences": [{"type": "website", "url": address}],
        **more,
    }


def sqlite(release: str, **more: object) -> dict[str, object]:
    """Return a release of SQLite."""
    cpe = f"cpe:2.3:a:sqlite:sqlite:{release}:*:*:*:*:*:*:*"
    return component("SQLite", release, "blessing", "https://sqlite.org", cpe=cpe, **more)


def sqlite_of_page() -> str:
    """Return the release of SQLite that sql.js was compiled from, as the WebAssembly in it says."""
    script = (ROOT / "python/commlens/page/_sqlite.js").read_text(encoding="utf-8")
    module = re.search(r"AGFzbQ[A-Za-z0-9+/]+", script)  # \0asm
    assert module
    text = module[0] + "=" * (-len(module[0]) % 4)
    (release,) = re.findall(rb"(3\.\d+\.\d+)\0", b64decode(text))
    return str(release, "ascii")


def sql_js() -> dict[str, object]:
    """Return SQLite for the browser, which `commlens html` puts into a page."""
    locked = json.loads((ROOT / "page" / "package-lock.json").read_text())["packages"]["node_modules/sql.js"]
    kind, _, digest = locked["integrity"].partition("-")
    assert kind == "sha512"
    return component(
        "sql.js",
        locked["version"],
        locked["license"],
        "https://sql.js.org",
        purl=f"pkg:npm/sql.js@{locked['version']}",
        hashes=[{"alg": "SHA-512", "content": b64decode(digest).hex()}],
        components=[{**sqlite(release := sqlite_of_page()), "bom-ref": f"sql.js/SQLite@{release}"}],
    )


def sqlite_of_library() -> dict[str, object]:
    """Return SQLite, which is part of the library and of commlens-arena."""
    source = "third_party/sqlite/sqlite3.c"
    release = re.search(
        r'^#define SQLITE_VERSION +"(.*)"$', (ROOT / "third_party/sqlite/sqlite3.h").read_text(), re.M
    )
    digest = re.search(rf"^(\w+)  {source}$", (ROOT / "third_party/SHA256SUMS").read_text(), re.M)
    assert release
    assert digest
    return sqlite(release[1], hashes=[{"alg": "SHA-256", "content": digest[1]}])


def runtime() -> list[dict[str, object]]:
    """Return the C++ library that ziglang brings; its version is that of its Clang."""
    said = subprocess.run(
        [sys.executable, "-m", "ziglang", "cc", "--version"], capture_output=True, text=True, check=True
    ).stdout
    release = re.match(r"clang version ([\d.]+)", said)
    assert release, said
    return [component(name, release[1], APACHE_WITH_EXCEPTION, "https://libcxx.llvm.org") for name in RUNTIME]


def bill(target: str | None) -> dict[str, object]:
    """Return the bill of materials; `target` of a wheel with the library."""
    ours = (ROOT / "VERSION").read_text().strip()
    product = {
        "type": "application",
        "bom-ref": f"commlens@{ours}",
        "name": "commlens",
        "version": ours,
        "licenses": [{"expression": "Apache-2.0 AND MIT AND blessing"}],
        "purl": f"pkg:pypi/commlens@{ours}",
    }
    metadata: dict[str, object] = {"component": product}
    parts = [sql_js()]
    if target is not None:
        parts += [sqlite_of_library(), *runtime()]
        metadata["properties"] = [{"name": "commlens:target", "value": target}]
        metadata["tools"] = {
            "components": [{"type": "application", "name": "ziglang", "version": version("ziglang")}]
        }
    references = [part["bom-ref"] for part in parts]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": metadata,
        "components": parts,
        "dependencies": [{"ref": product["bom-ref"], "dependsOn": references}],
    }


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--library", metavar="TARGET")
    print(json.dumps(bill(arguments.parse_args().library), indent=2))
