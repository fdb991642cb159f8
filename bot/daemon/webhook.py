"""Receive signed webhooks on a port: check the signature, store the event, answer. All other work happens later.

GitHub waits ten seconds for the answer and does not deliver again by itself. So an event is on disk before it is
acknowledged. The signature covers the raw body, and is checked before the body is parsed.

Anybody can connect. A request has one deadline, head and body together, and the number of requests that are read at
the same time is limited. Above the limit the oldest is closed: slow clients lose their connection, and a delivery,
which arrives at once, does not.
"""

from __future__ import annotations

import hmac
import io
import re
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from runners.core.errors import InfraError, UserError

REQUEST_DEADLINE_S = 10.0
"""Deadline of one request, head, body and answer together."""
MAX_CONNECTIONS = 16
"""Requests that are being read at the same time."""
MAX_BODY = 4 * 1024 * 1024
"""Bytes. An event contains at most three texts of 65,536 characters, of at most twelve bytes each."""

Receive = Callable[[str, bytes], bool]
"""Name and payload of an event → True if the event is new. Returns only after the event is on disk.

Raises InfraError or UserError if the event cannot be stored.
"""


def has_valid_signature(secret: bytes, body: bytes, header: str) -> bool:
    """True if ``header`` (``X-Hub-Signature-256``) is GitHub's signature of ``body``."""
    expected = "sha256=" + hmac.new(secret, body, sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), header.encode(errors="replace"))


def open_server(address: tuple[str, int], secret: bytes, receive: Receive) -> ThreadingHTTPServer:
    """Return a server for ``POST /``; call its ``serve_forever``. Port 0 takes any free port.

    Raises:
        ValueError: the secret is empty, so that anybody could send events.
    """
    if not secret:
        raise ValueError("a webhook needs a secret: without one anybody could send events")
    reading = _ReadingConnections()

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "reprobot", ""

        def setup(self) -> None:
            super().setup()
            self.rfile = io.BufferedReader(_DeadlineReader(self.connection, time.monotonic() + REQUEST_DEADLINE_S))

        def do_POST(self) -> None:
            self._send_answer(self._receive_event())

        def _receive_event(self) -> HTTPStatus:
            length = self.headers.get("Content-Length", "")
            if not re.fullmatch(r"\d{1,10}", length, re.ASCII):
                return HTTPStatus.LENGTH_REQUIRED
            if int(length) > MAX_BODY:
                return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            body = self.rfile.read(int(length))
            reading.remove(self.connection)
            if len(body) != int(length) or not has_valid_signature(
                secret, body, self.headers.get("X-Hub-Signature-256", "")
            ):
                return HTTPStatus.UNAUTHORIZED
            event = self.headers.get("X-GitHub-Event", "")
            if not re.fullmatch(r"[a-z_]{1,60}", event):
                return HTTPStatus.BAD_REQUEST
            try:
                return HTTPStatus.ACCEPTED if receive(event, body) else HTTPStatus.OK
            except (InfraError, UserError):
                return HTTPStatus.SERVICE_UNAVAILABLE  # not on disk; polling finds the event

        def _send_answer(self, status: HTTPStatus) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass  # a stranger wrote the request line

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 4 * MAX_CONNECTIONS

        def process_request(self, request: Any, client_address: Any) -> None:
            reading.add(request)
            super().process_request(request, client_address)

        def shutdown_request(self, request: Any) -> None:
            reading.remove(request)
            super().shutdown_request(request)

        def handle_error(self, request: Any, client_address: Any) -> None:
            if not isinstance(sys.exception(), OSError):  # a stranger can close connections: do not log it
                super().handle_error(request, client_address)

    return Server(address, Handler)


class _ReadingConnections:
    """The connections whose request is being read, oldest first."""

    def __init__(self) -> None:
        self._open: dict[socket.socket, None] = {}
        self._lock = threading.Lock()

    def add(self, connection: socket.socket) -> None:
        """Add a connection. Close the oldest above the limit."""
        with self._lock:
            self._open[connection] = None
            while len(self._open) > MAX_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # wakes its thread, which closes it

    def remove(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.pop(connection, None)


class _DeadlineReader(io.RawIOBase):
    """Reads a socket until a deadline. A timeout of the socket alone begins anew with each byte."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection, self._deadline = connection, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)
