# SPDX-License-Identifier: Apache-2.0
"""Serves the page of one profile to browsers of one user on this machine."""

from __future__ import annotations

import json
import math
import secrets
import sqlite3
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Thread
from typing import Any

from commlens.base.errors import CommlensError
from commlens.base.escape import Target, escape
from commlens.profile.database import Database
from commlens.profile.query import answer

HOST = "127.0.0.1"
MOST_ROWS = 10_000
"""Rows of an answer; the page says when there are more."""
LONGEST_QUERY = 10**6  # bytes
QUERY_S = 60.0  # processor time of a query
PIECE = 1 << 16  # bytes that a connection takes within the time limit of the handler


def shown_value(value: Any) -> Any:
    """Return a value of SQL for JSON.

    >>> shown_value(b"ab"), shown_value(float("inf")), shown_value(2)
    ('2 bytes', 'inf', 2)
    """
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class Server(ThreadingHTTPServer):
    """Sends the page itself, and answers queries of view SQL, one at a time.

    Each connection has a thread, so that one that is silent or slow keeps no other waiting. Queries are answered on the
    thread of the database. Every address begins with a random token, so that other users of the machine, who can reach the port, read nothing.

    Parameters
    ----------
    connection : Database
        The open profile.
    page : str
        Its page, made for a server.
    port : int
        The port, or 0 for a free one.

    Raises
    ------
    CommlensError
        The port cannot be opened.
    """

    block_on_close = False

    def __init__(self, connection: Database, page: str, port: int = 0) -> None:
        self.connection, self.page = connection, page.encode()
        self.queries: SimpleQueue[tuple[str, SimpleQueue[dict[str, Any]]]] = SimpleQueue()
        connection.take_time()  # each query has a deadline of its own
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            raise CommlensError(f"port {port}: {error.strerror}") from None

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def hosts(self) -> tuple[str, ...]:
        """Return the host names that a request may have: a foreign name would let another page read this one."""
        return f"{HOST}:{self.port}", f"localhost:{self.port}"

    def serve(self) -> None:
        """Serve until Ctrl-C."""
        Thread(target=self.serve_forever, daemon=True).start()
        while True:
            query, answers = self.queries.get()
            answers.put(self.answer(query))

    def ask(self, query: str) -> dict[str, Any]:
        """Return the answer to a query, from a thread of a connection."""
        answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.queries.put((query, answers))
        return answers.get()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print no traceback if the browser closed the connection or was too slow."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def answer(self, query: str) -> dict[str, Any]:
        """Return the answer to a query for view SQL, or the error."""
        try:
            with self.connection.within(QUERY_S) as deadline:
                names, rows = answer(self.connection, query, MOST_ROWS + 1)
        except CommlensError as error:
            return {"error": str(error)}
        except sqlite3.Error as error:
            if str(error) != "interrupted":
                return {"error": f"SQL: {error}"}
            if deadline.spent_s < QUERY_S:  # the sqlite3 module hides Ctrl-C
                raise KeyboardInterrupt from None
            return {"error": "SQL: took longer than a minute of processor time"}
        shown = [[shown_value(value) for value in row] for row in rows]
        return {"names": names, "rows": shown[:MOST_ROWS], "isCut": len(rows) > MOST_ROWS}


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    timeout = 10  # seconds, for each read and write
    server_version = "commlens"
    sys_version = ""

    def do_GET(self) -> None:
        """Send the page."""
        if self._is_allowed(""):
            self._send("text/html; charset=utf-8", self.server.page)

    def do_POST(self) -> None:
        """Answer a query."""
        if not self._is_allowed("sql"):
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LONGEST_QUERY:
            self._refuse(413)
            return
        query = self.rfile.read(int(length)).decode("utf-8", "replace")
        text = json.dumps(self.server.ask(query), allow_nan=False)
        self._send("application/json", text.encode())

    def _is_allowed(self, name: str) -> bool:
        wanted = f"/{self.server.token}/{name}"
        path = self.path.partition("?")[0]
        is_ours = secrets.compare_digest(path.encode(), wanted.encode())
        if is_ours and self.headers.get("Host", "") in self.server.hosts():
            return True
        self._refuse(404)
        return False

    def _refuse(self, code: int) -> None:
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        for at in range(0, len(content), PIECE):
            self.wfile.write(content[at : at + PIECE])

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: the terminal shows the address only."""


def tunnel(port: int, user: str, host: str) -> str:
    """Return the command that makes the page reachable from another machine.

    >>> tunnel(8000, "ann", "login1")
    'ssh -L 8000:127.0.0.1:8000 ann@login1'
    """
    return escape(f"ssh -L {port}:{HOST}:{port} {user}@{host}", Target.LINE)
