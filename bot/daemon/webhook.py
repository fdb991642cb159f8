"""Receive signed webhooks on a port: check the signature, store the event, answer. All other work happens later.

GitHub waits ten seconds for the answer and does not deliver again by itself, so an event is on disk before it is
acknowledged. The signature covers the raw body, and is checked before the body is parsed.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from hashlib import sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import Any

from bot.requests.request import MAX_EVENT

SECONDS = 10
"""Limit for one request, head and body: a slow request holds one of a few threads."""
MAX_REQUESTS = 8
"""Requests at the same time."""

Receive = Callable[[str, bytes], bool]
"""Name and payload of an event → True if the event is new. Returns only after the event is on disk."""


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
    slots = BoundedSemaphore(MAX_REQUESTS)

    class Handler(BaseHTTPRequestHandler):
        timeout = SECONDS
        server_version, sys_version = "reprobot", ""

        def do_POST(self) -> None:
            if not slots.acquire(blocking=False):
                return self._send_answer(HTTPStatus.SERVICE_UNAVAILABLE)
            try:
                self._send_answer(self._receive_event())
            finally:
                slots.release()

        def _receive_event(self) -> HTTPStatus:
            length = self.headers.get("Content-Length", "")
            if not re.fullmatch(r"\d{1,10}", length, re.ASCII):
                return HTTPStatus.LENGTH_REQUIRED
            if int(length) > MAX_EVENT:
                return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            body = self.rfile.read(int(length))
            if len(body) != int(length) or not has_valid_signature(
                secret, body, self.headers.get("X-Hub-Signature-256", "")
            ):
                return HTTPStatus.UNAUTHORIZED
            event = self.headers.get("X-GitHub-Event", "")
            if not re.fullmatch(r"[a-z_]{1,60}", event):
                return HTTPStatus.BAD_REQUEST
            return HTTPStatus.ACCEPTED if receive(event, body) else HTTPStatus.OK

        def _send_answer(self, status: HTTPStatus) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass  # a stranger wrote the request line

    server = ThreadingHTTPServer(address, Handler)
    server.daemon_threads = True
    return server
