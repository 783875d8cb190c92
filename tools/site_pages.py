# SPDX-License-Identifier: Apache-2.0
"""What mkdocs does to the pages of docs/: their order, links to files that are not in docs/, and search without a network.

The order of the guide is that of its list in docs/guide/README.md; other folders are in the order of their names.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

SECTIONS = {
    "Guide": "guide",
    "Questions": "questions",
    "Coming from": "from",
    "Reference": "reference",
    "Cases": "cases",
    "Evidence": "evidence",
    "Decisions": "decisions",
}
LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#]+)(#[^)]*)?\)")


def pages_of(docs: Path, folder: str) -> list[str]:
    """Return the pages of a folder in their order, its README first."""
    every = sorted(path.name for path in (docs / folder).glob("*.md"))
    listed = []
    if "README.md" in every:
        text = (docs / folder / "README.md").read_text(encoding="utf-8")
        listed = ["README.md", *re.findall(r"\]\((\w[\w-]*\.md)\)", text)]
    order = dict.fromkeys([*(name for name in listed if name in every), *every])
    return [f"{folder}/{name}" for name in order]


def on_config(config: Any) -> Any:
    """Set the navigation."""
    docs = Path(config["docs_dir"])
    alone = sorted(path.name for path in docs.glob("*.md") if path.name != "index.md")
    config["nav"] = [
        {"commlens": "index.md"},
        *({title: pages_of(docs, folder)} for title, folder in SECTIONS.items() if (docs / folder).is_dir()),
        {"More": alone},
    ]
    return config


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Name the files outside of docs/ instead of linking to them: the site does not have them."""
    del files
    docs = Path(config["docs_dir"]).resolve()
    here = (docs / page.file.src_uri).parent

    def name(match: re.Match[str]) -> str:
        target = (here / match[2]).resolve()
        if target.is_relative_to(docs):
            return match[0]
        path = target.relative_to(docs.parent)
        return match[1] if str(path) in match[1] else f"{match[1]} (`{path}`)"

    return LINK.sub(name, markdown)


SHIM = "https://unpkg.com/iframe-worker/shim"
OWN_SHIM = "assets/javascripts/iframe-worker.js"


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    """Load the script that the search needs from the site itself."""
    del config
    return output.replace(SHIM, "../" * page.file.dest_uri.count("/") + OWN_SHIM)


def on_post_build(*, config: Any) -> None:
    """Copy that script, which tools/site.sh has fetched."""
    packages = Path(config["config_file_path"]).parent / "build" / "site-tools" / "node_modules"
    shutil.copy(packages / "iframe-worker" / "shim" / "index.js", Path(config["site_dir"]) / OWN_SHIM)
