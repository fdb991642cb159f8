"""Webhooks on a port: only events with GitHub's signature are kept, and they are on disk before the answer."""

from __future__ import annotations

import hmac
import http.client
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bot.daemon.webhook import MAX_BODY, MAX_CONNECTIONS, has_valid_signature, open_server
from runners.core.errors import InfraError
from tests.support.waiting import wait_until

SECRET = b"a secret of some length"


class WebhookClient:
    """A server under test, and the events that it received."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, bytes]] = []
        self.problem: InfraError | None = None
        self.server = open_server(("127.0.0.1", 0), SECRET, self._receive)

    def _receive(self, kind: str, payload: bytes) -> bool:
        if self.problem is not None:
            raise self.problem
        new = (kind, payload) not in self.kept
        self.kept.append((kind, payload))
        return new

    def post(self, body: bytes, *, event: str = "issues", signature: str | None = None, **headers: str) -> int:
        wanted = "sha256=" + hmac.new(SECRET, body, "sha256").hexdigest()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=10)
        try:
            connection.request(
                "POST",
                "/",
                body,
                {
                    "X-GitHub-Event": event,
                    "X-Hub-Signature-256": wanted if signature is None else signature,
                    **{name.replace("_", "-"): value for name, value in headers.items()},
                },
            )
            return connection.getresponse().status
        finally:
            connection.close()


@contextmanager
def listening() -> Iterator[WebhookClient]:
    sent = WebhookClient()
    threading.Thread(target=sent.server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield sent
    finally:
        sent.server.shutdown()
        sent.server.server_close()


def test_the_signature_is_as_github_computes_it() -> None:
    """The example in GitHub's documentation of webhooks."""
    digest = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert has_valid_signature(b"It's a Secret to Everybody", b"Hello, World!", digest)
    assert not has_valid_signature(b"It's a Secret to Everybody", b"Hello, World?", digest)


def test_a_signed_event_is_kept_once() -> None:
    """202 for a new one, 200 for a known one."""
    with listening() as sent:
        assert sent.post(b'{"action": "opened"}') == 202
        assert sent.post(b'{"action": "opened"}') == 200
        assert sent.kept[0] == ("issues", b'{"action": "opened"}')


@pytest.mark.parametrize(
    "signature",
    ["", "sha256=", "sha256=" + "0" * 64, "sha1=" + "0" * 40, "SHA256=é".encode().decode("latin-1"), "x" * 8000],
)
def test_an_unsigned_event_is_refused(signature: str) -> None:
    """With a wrong, missing, older or malformed signature."""
    with listening() as sent:
        assert sent.post(b"{}", signature=signature) == 401
        assert sent.kept == []


@pytest.mark.parametrize("event", ["", "Issues", "issues/../x", "a" * 61, "issues%0a"])
def test_an_event_name_has_plain_letters(event: str) -> None:
    """The name becomes part of the ledger."""
    with listening() as sent:
        assert sent.post(b"{}", event=event) == 400


def test_a_request_without_length_or_too_long_is_not_read() -> None:
    """The length is checked before the body is read."""
    with listening() as sent:
        for length, status in ((None, 411), ("-1", 411), ("1e3", 411), (str(MAX_BODY + 1), 413)):
            with socket.create_connection(("127.0.0.1", sent.server.server_port), timeout=10) as raw:
                line = f"Content-Length: {length}\r\n" if length is not None else ""
                raw.sendall(f"POST / HTTP/1.1\r\nHost: x\r\n{line}\r\n".encode())
                assert raw.recv(64).split()[1] == str(status).encode()
        assert sent.kept == []


def test_only_post_is_answered_and_the_secret_is_required() -> None:
    """Without a secret anybody could send events."""
    with listening() as sent:
        connection = http.client.HTTPConnection("127.0.0.1", sent.server.server_port, timeout=10)
        connection.request("GET", "/")
        assert connection.getresponse().status == 501
        connection.close()
    with pytest.raises(ValueError, match="secret"):
        open_server(("127.0.0.1", 0), b"", lambda kind, payload: True)


def test_an_event_that_cannot_be_stored_is_not_acknowledged() -> None:
    """So that GitHub shows the delivery as failed."""
    with listening() as sent:
        sent.problem = InfraError("the disk is full")
        assert sent.post(b"{}") == 503
        sent.problem = None
        assert sent.post(b"{}") == 202


# ---------------------------------------------------------------------------------------------- slow clients


def _open_slowly(sent: WebhookClient, start: bytes, count: int) -> list[socket.socket]:
    """Open connections that send the start of a request and then nothing."""
    opened = []
    for _ in range(count):
        raw = socket.create_connection(("127.0.0.1", sent.server.server_port), timeout=10)
        raw.sendall(start)
        opened.append(raw)
    return opened


SLOW_BODY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{"
SLOW_HEAD = b"POST / HTTP/1.1\r\nX: "


@pytest.mark.parametrize("start", [SLOW_BODY, SLOW_HEAD, b""], ids=["body", "head", "silent"])
@pytest.mark.parametrize("count", [8, 3 * MAX_CONNECTIONS])
def test_slow_requests_block_no_delivery(start: bytes, count: int) -> None:
    """Above the limit of connections the one that has been sending for longest is closed, not the new one."""
    before = threading.active_count()
    with listening() as sent:
        slow = _open_slowly(sent, start, count)
        for number in range(5):
            assert sent.post(b'{"number": %d}' % number) == 202
        most = before + MAX_CONNECTIONS + 2  # the server's own thread, and one that ends
        assert wait_until(lambda: threading.active_count() <= most)  # threads of closed connections end by and by
        for raw in slow:
            raw.close()


@pytest.mark.thorough
def test_one_deadline_covers_the_whole_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then does not extend the deadline, in the head or in the body."""
    monkeypatch.setattr("bot.daemon.webhook.REQUEST_DEADLINE_S", 0.5)
    for start in (SLOW_BODY, SLOW_HEAD):
        with listening() as sent:
            (raw,) = _open_slowly(sent, start, 1)
            raw.settimeout(0.1)
            began, answer = time.monotonic(), None
            while answer is None and time.monotonic() - began < 30:
                try:
                    raw.sendall(b"x")
                    answer = raw.recv(64)
                except TimeoutError:
                    continue
                except OSError:
                    answer = b""
            raw.close()
            assert answer == b""
            assert 0.3 < time.monotonic() - began < 20
            assert sent.kept == []


def test_a_closed_connection_leaves_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    """A stranger must not be able to fill the log."""
    with listening() as sent:
        for raw in _open_slowly(sent, SLOW_BODY, 3):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close with a reset
            raw.close()
        assert sent.post(b"{}") == 202
    assert capfd.readouterr().err == ""


def test_the_largest_event_of_an_issue_is_received() -> None:
    """Three texts of 65,536 characters, each escaped as a surrogate pair."""
    body = b'{"text": "' + rb"\ud83d\ude00" * (3 * 65_536) + b'"}'
    with listening() as sent:
        assert sent.post(body) == 202
