# SPDX-License-Identifier: Apache-2.0
"""What docs/reference/exports.md tells the reader to type works."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Run

from commlens.export import FORMATS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "exports.md"


def sections() -> Iterator[tuple[str, str]]:
    """Return heading and text of every section with something to type."""
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        heading, text = part.split("\n", 1)
        if "```" in text:
            yield heading, text


SECTIONS = dict(sections())


def test_every_format_has_a_section_with_something_to_type() -> None:
    assert set(FORMATS) | {"pandas and Polars"} == set(SECTIONS)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("heading", SECTIONS)
def test_what_a_section_tells_to_type_works(
    heading: str, run: Run, marked: Path, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("job.db").symlink_to(marked)
    Path("other.db").symlink_to(small)
    blocks = re.findall(r"```(sh|python)\n(.*?)```", SECTIONS[heading], re.DOTALL)
    assert "python" in dict(blocks)
    for language, text in blocks:
        if language == "sh":
            for line in text.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "commlens"
                done = run(*arguments)
                assert (done.exit_code, done.stderr) == (0, ""), line
        else:
            exec(compile(text, f"{PAGE.name}: {heading}", "exec"), {})
            assert capsys.readouterr().out.strip()
