"""Signed webhooks on a port: checked, kept in the ledger, answered; everything else happens later.

GitHub waits ten seconds for the answer and does not deliver again by itself, so an event is on the disk before it is
acknowledged. The signature is over the raw body: it is checked before anything in it is read.
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
"""For one request, head and body; a slow one holds a thread, and there are few."""
MOST_AT_ONCE = 8

Receive = Callable[[str, bytes], bool]
"""Event's name and payload → whether it is new. Returns only when it is on the disk."""


def signed(secret: bytes, body: bytes, header: str) -> bool:
    """Whether ``header`` (``X-Hub-Signature-256``) is GitHub's signature of ``body``."""
    wanted = "sha256=" + hmac.new(secret, body, sha256).hexdigest()
    return hmac.compare_digest(wanted.encode(), header.encode(errors="replace"))


def receiver(address: tuple[str, int], secret: bytes, receive: Receive) -> ThreadingHTTPServer:
    """A server for ``POST /``; call its ``serve_forever``. Port 0 takes any free one."""
    if not secret:
        raise ValueError("without a secret anybody could send events")
    room = BoundedSemaphore(MOST_AT_ONCE)

    class Handler(BaseHTTPRequestHandler):
        timeout = SECONDS
        server_version, sys_version = "reprobot", ""

        def do_POST(self) -> None:
            if not room.acquire(blocking=False):
                return self._answer(HTTPStatus.SERVICE_UNAVAILABLE)
            try:
                self._answer(self._received())
            finally:
                room.release()

        def _received(self) -> HTTPStatus:
            length = self.headers.get("Content-Length", "")
            if not re.fullmatch(r"\d{1,10}", length, re.ASCII):
                return HTTPStatus.LENGTH_REQUIRED
            if int(length) > MAX_EVENT:
                return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            body = self.rfile.read(int(length))
            if len(body) != int(length) or not signed(secret, body, self.headers.get("X-Hub-Signature-256", "")):
                return HTTPStatus.UNAUTHORIZED
            event = self.headers.get("X-GitHub-Event", "")
            if not re.fullmatch(r"[a-z_]{1,60}", event):
                return HTTPStatus.BAD_REQUEST
            return HTTPStatus.ACCEPTED if receive(event, body) else HTTPStatus.OK

        def _answer(self, status: HTTPStatus) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass  # what is in a request line was written by whoever sent it

    server = ThreadingHTTPServer(address, Handler)
    server.daemon_threads = True
    return server
