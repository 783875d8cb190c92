# SPDX-License-Identifier: Apache-2.0
"""Files for people and machines outside of the project agree with the repository."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]
VERSION = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CODEMETA = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))
EVIDENCE = ROOT / "docs" / "evidence"
PAPER = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")


def test_versions_are_that_of_the_file_version() -> None:
    assert CITATION["version"] == VERSION
    assert CODEMETA["version"] == VERSION


def test_the_citation_has_what_its_format_demands() -> None:
    """The keys that the schema of version 1.2.0 requires, and no type or license of our own invention."""
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION.keys() >= {"message", "title", "authors"}
    assert CITATION["type"] == "software"
    assert all(
        author.keys() & {"name", "family-names", "given-names", "alias"} for author in CITATION["authors"]
    )


def test_citation_and_codemeta_say_the_same() -> None:
    assert CODEMETA["name"] == CITATION["title"]
    assert CODEMETA["license"].endswith(f"/{CITATION['license']}")
    assert " ".join(CODEMETA["description"].split()) == " ".join(CITATION["abstract"].split())
    assert CODEMETA["keywords"] == CITATION["keywords"]
    assert [author["name"] for author in CODEMETA["author"]] == [
        author["name"] for author in CITATION["authors"]
    ]
    assert CODEMETA["@context"] == "https://w3id.org/codemeta/3.0"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_an_issue_template_has_fields_with_names_of_their_own(path: Path) -> None:
    template = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert template.keys() >= {"name", "description", "body"}
    fields = [field for field in template["body"] if field["type"] != "markdown"]
    names = [field["id"] for field in fields]
    assert len(set(names)) == len(names)
    assert any(field.get("validations", {}).get("required") for field in fields) or len(fields) == 1
    assert all(field["attributes"]["label"] for field in fields)


def test_workflows_call_targets_of_the_makefile_on_both_processors() -> None:
    targets = set(
        re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    runners: set[str] = set()
    called: set[str] = set()
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
            runners |= {job["runs-on"], *job.get("strategy", {}).get("matrix", {}).get("runner", [])}
            for step in job["steps"]:
                for target in re.findall(r"make ([a-z0-9-]+)", step.get("run", "")):
                    script = re.search(r"hashFiles\('([^']+)'\)", step.get("if", ""))
                    assert target in targets or (script and not (ROOT / script[1]).exists()), target
                    called.add(target)
    assert {"ubuntu-24.04", "ubuntu-24.04-arm"} <= runners
    assert {"test", "site"} <= called


def test_templates_and_workflows_are_found() -> None:
    assert len(TEMPLATES) >= 3
    assert WORKFLOWS


def test_each_policy_of_e4s_has_a_row_with_an_answer() -> None:
    page = (ROOT / "docs" / "e4s.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if "| " in line
    ]
    answers = {row[0].split()[0]: row[1] for row in rows}
    for name in [*(f"P{n}" for n in range(1, 10)), *(f"FP{n}" for n in range(1, 7)), "FLP1", "FLP4"]:
        assert answers[name] in ("yes", "no", "in part", "prepared"), name


def test_numbers_of_the_paper_are_in_the_evidence_that_it_names() -> None:
    """A comment behind a claim names its page; each number since the comment before is on that page."""
    section = PAPER.partition("# Verification and cost")[2].partition("# Acknowledgements")[0]
    claims = re.findall(r"(.*?)<!-- (\S+\.md) -->", section, re.DOTALL)
    assert len(claims) > 4
    for claim, name in claims:
        page = (EVIDENCE / name).read_text(encoding="utf-8")
        for number in re.findall(r"\d[\d,.]*\d|\d+", claim.replace("mpi4py", "")):
            assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d])", page), (number, name)
    assert re.findall(r"\d", section.rpartition("-->")[2]) == []


def test_what_the_paper_cites_is_in_its_bibliography() -> None:
    entries = set(
        re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8"), re.M)
    )
    assert set(re.findall(r"\[@(\w+)\]", PAPER)) == entries
