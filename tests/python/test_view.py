# SPDX-License-Identifier: Apache-2.0
"""The server of `commlens view`: it sends the page to those who know the address, and nothing to anybody else."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from browser import browser
from conftest import Run

pytestmark = pytest.mark.long


class View:
    """A running `commlens view`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.lines = [process.stdout.readline().rstrip() for _ in range(3)]
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/[\w-]{32}/)", self.lines[0])
        assert found, self.lines
        self.port, self.path = int(found[1]), found[2]

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, bytes, Any]:
        """Return status, content and header of an answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, content, response.headers

    def sql(self, query: str) -> Any:
        """Return the answer to a query."""
        status, content, _ = self.ask("POST", f"{self.path}sql", query)
        assert status == 200
        return json.loads(content)


@contextmanager
def viewing(profile: Path) -> Iterator[View]:
    # A shell starts what runs in the background with SIGINT ignored, and so what that starts.
    default = ["env", "--default-signal=INT"]
    command = [*default, sys.executable, "-m", "commlens", "view", str(profile)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield View(process)
    finally:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")


@pytest.fixture(scope="module")
def view(small: Path) -> Iterator[View]:
    with viewing(small) as found:
        yield found


def test_three_lines_say_how_to_reach_it(view: View) -> None:
    assert re.fullmatch(
        rf"from another machine: ssh -L {view.port}:127\.0\.0\.1:{view.port} \S+@{socket.gethostname()}",
        view.lines[1],
    )
    assert view.lines[2] == "Ctrl-C ends it"


def test_silent_connections_keep_no_other_waiting(view: View) -> None:
    silent = [socket.create_connection(("127.0.0.1", view.port)) for _ in range(8)]
    assert view.sql("SELECT 1")["rows"] == [[1]]
    for each in silent:
        each.close()


def test_a_page_that_nobody_waits_for_is_not_mentioned(view: View) -> None:
    """The connection is reset while the page is sent; that nothing is printed is checked when the command has ended."""
    with socket.create_connection(("127.0.0.1", view.port)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(f"GET {view.path} HTTP/1.0\r\nHost: localhost:{view.port}\r\n\r\n".encode())
    assert view.sql("SELECT 1")["rows"] == [[1]]


def test_ctrl_c_ends_it_during_a_query(small: Path) -> None:
    """`viewing` ends it like that."""
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"

    def wait_for_an_answer() -> None:
        with suppress(OSError, HTTPException):
            shown.sql(endless)

    with viewing(small) as shown:
        before = processor_time(shown.process.pid)
        client = Thread(target=wait_for_an_answer)
        client.start()
        end = time.monotonic() + 60
        while processor_time(shown.process.pid) < before + 0.5:
            assert time.monotonic() < end, "the query does not run"
            time.sleep(0.05)
    client.join()


def processor_time(pid: int) -> float:
    """Return the processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_the_address_has_the_page(view: View) -> None:
    status, content, headers = view.ask("GET", view.path)
    assert status == 200
    assert content.startswith(b"<!doctype html>")
    assert b"connect-src 'self'" in content
    assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")


@pytest.mark.parametrize("path", ["/", "/sql", "/{token}", "/{token}x/", "/x{token}/", "/%2e%2e/etc/passwd"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_the_token_nothing_is_sent(view: View, method: str, path: str) -> None:
    status, content, _ = view.ask(method, path.replace("{token}", view.path.strip("/")), "SELECT 1")
    assert (status, content) == (404, b"")


def test_a_page_of_another_host_cannot_read_it(view: View) -> None:
    assert view.ask("GET", view.path, Host="evil.example")[0] == 404
    assert view.ask("POST", f"{view.path}sql", "SELECT 1", Host="evil.example")[0] == 404
    assert view.ask("GET", view.path, Host=f"localhost:{view.port}")[0] == 200


def test_only_this_machine_reaches_it(view: View) -> None:
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    assert [row[1] for row in listening if row[1].endswith(f":{view.port:04X}") and row[3] == "0A"] == [
        f"0100007F:{view.port:04X}"
    ]


def test_queries_are_answered_and_change_nothing(view: View) -> None:
    assert view.sql("SELECT rank, NULL AS n, 'x' AS t FROM rank WHERE rank < 2") == {
        "names": ["rank", "n", "t"], "rows": [[0, None, "x"], [1, None, "x"]], "isCut": False,
    }  # fmt: skip
    assert view.sql("DELETE FROM rank") == {"error": "SQL: attempt to write a readonly database"}
    assert view.sql("ATTACH '/tmp/x.db' AS x") == {"error": "SQL: other files cannot be attached or written"}
    assert view.sql("SELECT nowhere") == {"error": "SQL: no such column: nowhere"}
    assert view.sql("SELECT 9e999, x'0102'")["rows"] == [["inf", "2 bytes"]]
    assert view.sql("SELECT COUNT(*) FROM rank")["rows"] == [[4]]


def test_long_answers_are_cut_and_say_so(view: View) -> None:
    many = view.sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n LIMIT 20000"
    )
    assert (len(many["rows"]), many["isCut"]) == (10_000, True)


@pytest.mark.parametrize("length", ["-1", "x", "99999999999"])
def test_a_query_of_an_impossible_length_is_refused(view: View, length: str) -> None:
    connection = HTTPConnection("127.0.0.1", view.port, timeout=30)
    connection.putrequest("POST", f"{view.path}sql")
    connection.putheader("Content-Length", length)
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_the_page_asks_the_server(small: Path) -> None:
    with browser() as tab, viewing(small) as view:
        tab.connect()
        address = f"http://127.0.0.1:{view.port}{view.path}"
        tab.open(address, "view=query&sql=SELECT%20SUM(calls)%20AS%20calls%20FROM%20cell")
        tab.wait_until("document.getElementById('answer') !== null")
        shown = tab.results()["answer"]["csv"]
        assert shown == f"calls\n{view.sql('SELECT SUM(calls) FROM cell')['rows'][0][0]}\n"
        tab.go("view=communicators")
        assert "families" in tab.results()
        assert [message for message in tab.complaints() if "favicon" not in message] == []


def test_a_port_in_use_is_one_line(small: Path, view: View, run: Run) -> None:
    done = run("view", small, "--port", view.port)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"commlens: port {view.port}: Address already in use\n"
