# SPDX-License-Identifier: Apache-2.0
"""The page of a dataset: well-formed, with links to jobs, without personal data, safe for hostile names."""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import Run
from fleet_cases import of_rows

from commlens.fleet._dataset import TABLES
from commlens.fleet.dataset import Dataset
from commlens.fleet.engine import DuckEngine, Scope
from commlens.fleet.html import Links as LinksOf
from commlens.fleet.html import page
from commlens.fleet.made_up import Truth, batches

VOID = ("meta", "rect", "br")
HOSTILE = "<script>alert(1)</script>\x1b[31m\"'&"


class Reader(HTMLParser):
    """Checks that tags are closed in order, and collects links and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attributes if name == "href"]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "year"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        for rows in batches(200, Truth()):
            Dataset(folder).add(rows)
    return folder


def test_the_page_shows_months_groups_and_answers_and_links_to_jobs(
    year: Path, tmp_path: Path, run: Run
) -> None:
    output = tmp_path / "fleet.html"
    output.write_text("an older page", encoding="utf-8")
    done = run("fleet", year, "--html", output, "--job-page", "/jobs/{cluster}/{job_id}.html")
    assert (done.exit_code, done.stdout) == (0, f"{output}\n")
    reader = read(output.read_text(encoding="utf-8"))
    assert {"2026-01", "2026-12", "chemistry"} <= set(reader.text.replace("\n", " ").split())
    assert "How much of the machine is spent in MPI" in reader.text
    assert " jobs of 5 codes on 1 machine, " in reader.text
    assert "user07" not in reader.text and "/scratch" not in reader.text and "/profiles" not in reader.text
    assert len(reader.links) > 30
    assert all(link.startswith("/jobs/made-up/10") and link.endswith(".html") for link in reader.links)
    assert "script" not in reader.tags
    run("fleet", year, "--html", output, "--personal")
    reader = read(output.read_text(encoding="utf-8"))
    assert "user07" in reader.text and reader.links == []


def test_hostile_names_are_text(tmp_path: Path) -> None:
    columns = [column.name for column in TABLES["job"].columns]
    values = {
        "job": 1,
        "cluster": HOSTILE,
        "month": "2026-01",
        "code": HOSTILE,
        "job_id": "../x?a=b#c",
        "app_ns": 10**15,
    }
    empty = {"TEXT": HOSTILE, "BIGINT": 1, "INTEGER": 0, "DOUBLE": 0.5, "TIMESTAMP": None}
    row = tuple(values.get(name, empty[TABLES["job"].columns[i].type]) for i, name in enumerate(columns))
    Dataset(tmp_path / "set").add({"job": [row]})
    text = page(DuckEngine(tmp_path / "set", Scope()), HOSTILE, LinksOf("/j/{job_id}"), is_personal=True)
    reader = read(text)
    assert "script" not in reader.tags and "\x1b" not in text
    assert set(reader.links) == {"/j/..%2Fx%3Fa%3Db%23c"}


def test_a_job_without_an_id_is_a_link_by_its_code_and_empty_columns_are_left_out(tmp_path: Path) -> None:
    jobs = [
        {"job": 1, "code": "one", "app_ns": 10**15, "mpi_ns": 10**14},
        {"job": 2, "code": "two", "app_ns": 10**15, "mpi_ns": 10**13},
    ]
    engine = DuckEngine(of_rows(tmp_path / "set", job=jobs), Scope())
    text = page(engine, "x", LinksOf("./{job}.html"))
    assert '<td class="text one"><a href="./1.html">one</a></td>' in text
    first = text[text.index("Jobs with the most") : text.index("Jobs that lose")]
    assert "job id" not in first and ">load balance<" not in first and ">mpi hours<" in first


@pytest.mark.parametrize("address", ["javascript:alert({job})", "jobs/{job}", "/jobs/{user}", "/jobs/{"])
def test_a_wrong_address_is_refused(address: str, year: Path, tmp_path: Path, run: Run) -> None:
    done = run("fleet", year, "--html", tmp_path / "fleet.html", "--job-page", address)
    assert (done.exit_code, "--job-page: " in done.stderr) == (2, True)
    assert not (tmp_path / "fleet.html").exists()


def test_a_page_of_no_jobs_is_a_page(tmp_path: Path) -> None:
    Dataset(tmp_path / "set")
    assert "0 jobs of 0 codes" in read(page(DuckEngine(tmp_path / "set", Scope()), "x", LinksOf())).text


def test_two_answers_at_once_are_refused(year: Path, tmp_path: Path, run: Run) -> None:
    done = run("fleet", year, "share", "--html", tmp_path / "fleet.html")
    assert (done.exit_code, "different answers" in done.stderr) == (2, True)
    assert run("fleet", year, "--personal").exit_code == 2
