"""A fake GitHub on loopback: the part of its REST API that the bot uses, with state, and with faults on demand.

It is a server, not a mock of a client: PyGithub, its retries and its paging are the real ones. The state lives in the
process of the test, so a bot that is killed finds it again, as on GitHub.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.bot.forge import objects
from tests.bot.forge.objects import JSON, stamp

REPOSITORY = "octo/compiler"
TOKEN = "fake-token-for-loopback"
ME = "github-actions[bot]"
MAX_BODY = 262_144
NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


class Checker(Protocol):
    """Compares requests and answers with a description of the API; returns the faults."""

    def request(self, method: str, template: str, query: dict[str, str], body: Any) -> list[str]: ...

    def response(self, method: str, template: str, status: int, body: Any) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Fault:
    """A fault for the next ``times`` requests that match; with ``after``, once the request has taken effect.

    A status of 0 closes the connection without an answer.
    """

    status: int
    method: str = "GET|POST|PATCH|DELETE|PUT"
    path: str = ".*"
    message: str = "Server Error"
    headers: dict[str, str] = field(default_factory=dict)
    after: bool = False
    times: int = 1

    def hits(self, method: str, path: str) -> bool:
        return self.times > 0 and bool(re.fullmatch(self.method, method)) and bool(re.search(self.path, path))


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it arrived. ``took_effect`` is False if a fault stopped it."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    status: int
    took_effect: bool


Handler = Callable[[re.Match[str], dict[str, str], Any], Answer]


class FakeGithub:
    """One repository. ``with FakeGithub() as github: … github.url``."""

    def __init__(self, *, me: str = ME, checker: Checker | None = None, repository: str = REPOSITORY) -> None:
        self.repository, self.me, self.checker = repository, me, checker
        self.tokens = {TOKEN}
        self.issues: dict[int, JSON] = {}
        self.comments: dict[int, JSON] = {}
        self.events: dict[int, list[JSON]] = {}
        self.labels: dict[str, JSON] = {}
        self.reactions: dict[tuple[str, int, str], JSON] = {}
        self.roles: dict[str, str] = {}
        self.files: dict[str, bytes] = {}
        self.gone: dict[int, Answer] = {}
        self.run_jobs: dict[int, list[JSON]] = {}
        self.run_artifacts: dict[int, list[JSON]] = {}
        """By number of the workflow run."""
        self.may_write = True
        self.faults: list[Fault] = []
        self.log: list[Call] = []
        self.violations: list[str] = []
        self.hook: Callable[[int, bool], None] = lambda number, after: None
        """Called before and after each request takes effect, with its number, counted from 1."""
        self.url = ""
        self.now = NOW
        self._ids = 4_000
        self._lock = threading.RLock()
        self._server: ThreadingHTTPServer | None = None

    # ------------------------------------------------------------------------------ what tests do to it

    def open_issue(self, number: int, body: str | None, *, title: str = "It fails", author: str = "ada") -> JSON:
        with self._lock:
            at = self.tick()
            self.issues[number] = objects.issue(
                self.url, self.repository, number, title=title, body=body, author=author, at=at
            )
            return self.issues[number]

    def edit_issue(self, number: int, body: str) -> None:
        with self._lock:
            self.issues[number].update(body=body, updated_at=stamp(self.tick()))

    def say(self, number: int, author: str, body: str, *, app: int | None = None) -> JSON:
        """Write a comment as ``author``."""
        with self._lock:
            self._ids += 1
            made = objects.comment(
                self.url, self.repository, self._ids, number, body=body, author=author, at=self.tick()
            )
            self.comments[self._ids] = made
            self.issues[number].update(updated_at=made["updated_at"], comments=self.issues[number]["comments"] + 1)
            return made

    def close_issue(self, number: int, reason: str = "completed", *, commit: str | None = None) -> None:
        with self._lock:
            at = stamp(self.tick())
            self.issues[number].update(state="closed", state_reason=reason, closed_at=at, updated_at=at)
            self.add_event(number, "closed", commit)

    def add_event(self, number: int, name: str, commit: str | None = None) -> None:
        """Add an event to the history of an issue, at this moment."""
        with self._lock:
            self._ids += 1
            made = objects.issue_event(self.url, self.repository, self._ids, name, commit=commit, at=self.now)
            self.events.setdefault(number, []).append(made)

    def delete_issue(self, number: int) -> None:
        self.gone[number] = Answer(410, objects.error("This issue was deleted"))

    def transfer_issue(self, number: int, to: str, new: int) -> None:
        url = f"{self.url}/repos/{to}/issues/{new}"
        moved = objects.issue(self.url, to, new, title="moved", body="", author="ada", at=self.tick())
        self._elsewhere[f"/repos/{to}/issues/{new}"] = moved
        self.gone[number] = Answer(301, {**objects.error("Moved Permanently"), "url": url}, {"Location": url})

    def hide_issue(self, number: int) -> None:
        self.gone[number] = Answer(404, objects.error("Not Found"))

    def lock_issue(self, number: int) -> None:
        self.issues[number].update(locked=True, active_lock_reason="resolved", updated_at=stamp(self.tick()))

    def ours(self, number: int) -> list[str]:
        """Return the bodies of the bot's comments, oldest first."""
        return [one["body"] for one in self._on(number) if one["user"]["login"] == self.me]

    def calls(self, method: str, path: str = ".*") -> list[Call]:
        return [call for call in self.log if call.method == method and re.search(path, call.path)]

    def event(self, action: str, number: int, *, comment: JSON | None = None, by: str = "ada") -> bytes:
        """Return the webhook's payload for an event on an issue."""
        body = {
            "action": action,
            "issue": self.issues[number],
            "repository": objects.repository(self.url, self.repository),
            "sender": objects.user(self.url, by),
        }
        return json.dumps(body if comment is None else {**body, "comment": comment}).encode()

    def tick(self, seconds: float = 1) -> datetime:
        with self._lock:
            self.now += timedelta(seconds=seconds)
            return self.now

    # ------------------------------------------------------------------------------ the server

    _elsewhere: dict[str, JSON]

    def __enter__(self) -> Self:
        self._elsewhere = {}
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        # A short poll: the default makes every test wait half a second for the end of the server.
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def environment(self) -> dict[str, str]:
        """Return the variables of a workflow's step."""
        return {"GITHUB_API_URL": self.url, "GITHUB_TOKEN": TOKEN, "GITHUB_ACTIONS": "true", "REPROBOT_PACE": "off"}

    def serve(self, method: str, target: str, headers: dict[str, str], raw: bytes) -> Answer:
        """Answer one request. Status 0 closes the connection without an answer."""
        parts = urlsplit(target)
        path, query = unquote(parts.path), dict(parse_qsl(parts.query, keep_blank_values=True))
        body = json.loads(raw) if raw else None
        with self._lock:
            fault = next((one for one in self.faults if one.hits(method, path)), None)
            if fault is not None:
                fault.times -= 1
            stopped = fault is not None and not fault.after
            number = len(self.log) + 1
            self.hook(number, False)
            answer = Answer(0) if stopped else self._answer(method, path, query, headers, body)
            if fault is not None:
                answer = Answer(fault.status, objects.error(fault.message), fault.headers)
            self.log.append(Call(method, path, query, body, answer.status, not stopped))
            self.hook(number, True)
            return answer

    def _answer(self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: Any) -> Answer:
        if not self._authorised(headers.get("authorization", "")):
            return Answer(401, objects.error("Bad credentials"))
        if method == "GET" and path in self._elsewhere:
            return Answer(200, self._elsewhere[path])
        for template, (verb, pattern, handler) in self._routes():
            found = re.fullmatch(pattern, path)
            if verb == method and found is not None:
                return self._checked(method, template, query, body, partial(handler, found, query, body))
        return Answer(404, objects.error("Not Found"))

    def _authorised(self, header: str) -> bool:
        kind, _, token = header.partition(" ")
        return not header or (kind.lower() in ("token", "bearer") and token in self.tokens)

    def _checked(
        self, method: str, template: str, query: dict[str, str], body: Any, answer: Callable[[], Answer]
    ) -> Answer:
        """Validate request and answer. GitHub too refuses a body that is not as described."""
        if self.checker is None:
            return answer()
        if wrong := self.checker.request(method, template, query, body):
            self.violations += wrong
            return Answer(422, {**objects.error("Validation Failed"), "errors": wrong})
        made = answer()
        self.violations += self.checker.response(method, template, made.status, made.body)
        return made

    # ------------------------------------------------------------------------------ the API

    def _routes(self) -> Iterator[tuple[str, tuple[str, str, Handler]]]:
        repo, issue = "/repos/{owner}/{repo}", "/repos/{owner}/{repo}/issues/{issue_number}"
        comment = "/repos/{owner}/{repo}/issues/comments/{comment_id}"
        table: tuple[tuple[str, str, Handler], ...] = (
            ("GET", "/user", lambda *_: Answer(200, objects.account(self.url, self.me))),
            ("GET", f"{repo}/issues", self._list_issues),
            ("GET", f"{repo}/issues/comments", self._list_all_comments),
            ("GET", comment, self._get_comment),
            ("PATCH", comment, self._edit_comment),
            ("DELETE", comment, self._delete_comment),
            ("GET", f"{comment}/reactions", partial(self._list_reactions, "comment")),
            ("POST", f"{comment}/reactions", self._react_to_comment),
            ("DELETE", f"{comment}/reactions/{{reaction_id}}", self._remove_reaction),
            ("GET", issue, self._get_issue),
            ("GET", f"{issue}/comments", self._list_comments),
            ("GET", f"{issue}/events", self._list_events),
            ("POST", f"{issue}/comments", self._create_comment),
            ("GET", f"{issue}/reactions", partial(self._list_reactions, "issue")),
            ("POST", f"{issue}/reactions", self._react_to_issue),
            ("DELETE", f"{issue}/reactions/{{reaction_id}}", self._remove_reaction),
            ("GET", f"{issue}/labels", self._list_labels),
            ("POST", f"{issue}/labels", self._add_labels),
            ("DELETE", f"{issue}/labels/{{name}}", self._remove_label),
            ("GET", f"{repo}/labels/{{name}}", self._get_label),
            ("POST", f"{repo}/labels", self._create_label),
            ("GET", f"{repo}/collaborators/{{username}}/permission", self._permission),
            ("GET", f"{repo}/contents/{{path}}", self._contents),
            ("GET", f"{repo}/actions/runs/{{run_id}}/jobs", self._list_run_jobs),
            ("GET", f"{repo}/actions/runs/{{run_id}}/artifacts", self._list_run_artifacts),
        )
        owner, _, name = self.repository.partition("/")
        for method, template, handler in table:
            pattern = template.replace("{owner}", re.escape(owner)).replace("{repo}", re.escape(name))
            pattern = pattern.replace("{reaction_id}", r"(?P<reaction>\d+)")
            pattern = re.sub(r"\{(\w+)_(?:number|id)\}", r"(?P<id>\\d+)", pattern)
            pattern = pattern.replace("{path}", "(?P<path>.+)")
            yield template, (method, re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern), handler)

    def _refused(self, number: int | None = None) -> Answer | None:
        """Return the refusal of a write (to that issue); None if it is allowed."""
        if not self.may_write:
            return Answer(403, objects.error("Resource not accessible by integration"))
        if number is not None and number in self.gone:
            return self.gone[number]
        if number is not None and number not in self.issues:
            return Answer(404, objects.error("Not Found"))
        return None

    def _get_issue(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        number = int(at["id"])
        if number in self.gone:
            return self.gone[number]
        found = self.issues.get(number)
        return Answer(404, objects.error("Not Found")) if found is None else Answer(200, found)

    def _list_issues(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        state, wanted = query.get("state", "open"), set(filter(None, query.get("labels", "").split(",")))
        found = [
            issue
            for number, issue in self.issues.items()
            if number not in self.gone
            and state in ("all", issue["state"])
            and wanted <= {label["name"] for label in issue["labels"]}
            and issue["updated_at"] >= query.get("since", "")
        ]
        return self._page(f"/repos/{self.repository}/issues", _sorted(found, query), query)

    def _list_run_jobs(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        return self._count_page("jobs", self.run_jobs.get(int(at["id"])), query)

    def _list_run_artifacts(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        return self._count_page("artifacts", self.run_artifacts.get(int(at["id"])), query)

    def _count_page(self, key: str, rows: list[JSON] | None, query: dict[str, str]) -> Answer:
        """Answer one page of an object with a count, as the lists of GitHub Actions are."""
        if rows is None:
            return Answer(404, objects.error("Not Found"))
        size, page = int(query.get("per_page", "30")), int(query.get("page", "1"))
        return Answer(200, {"total_count": len(rows), key: rows[(page - 1) * size : page * size]})

    def _on(self, number: int) -> list[JSON]:
        return [one for one in self.comments.values() if one["issue_url"].endswith(f"/issues/{number}")]

    def _list_comments(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        number = int(at["id"])
        if number in self.gone:
            return self.gone[number]
        return self._page(f"/repos/{self.repository}/issues/{number}/comments", self._on(number), query)

    def _list_events(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        number = int(at["id"])
        if number in self.gone:
            return self.gone[number]
        return self._page(f"/repos/{self.repository}/issues/{number}/events", self.events.get(number, []), query)

    def _list_all_comments(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        found = [one for one in self.comments.values() if one["updated_at"] >= query.get("since", "")]
        return self._page(f"/repos/{self.repository}/issues/comments", _sorted(found, query), query)

    def _page(self, path: str, rows: list[JSON], query: dict[str, str]) -> Answer:
        size, page = int(query.get("per_page", "30")), int(query.get("page", "1"))
        last = max(1, -(-len(rows) // size))
        others = "&".join(f"{name}={value}" for name, value in query.items() if name != "page")
        links = [
            f'<{self.url}{path}?{others}&page={number}>; rel="{rel}"'
            for rel, number in (("next", page + 1), ("last", last))
            if page < last
        ]
        return Answer(200, rows[(page - 1) * size : page * size], {"Link": ", ".join(links)} if links else {})

    def _create_comment(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        number = int(at["id"])
        if refused := self._refused(number):
            return refused
        if self.issues[number]["locked"]:
            return Answer(403, objects.error("Unable to create comment because issue is locked."))
        return self._too_long(body) or Answer(201, self.say(number, self.me, body["body"]))

    def _too_long(self, body: Any) -> Answer | None:
        if len(body["body"].encode(errors="replace")) <= MAX_BODY:
            return None
        return Answer(422, {**objects.error("Validation Failed"), "errors": [{"field": "body", "code": "custom"}]})

    def _get_comment(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        found = self.comments.get(int(at["id"]))
        return Answer(404, objects.error("Not Found")) if found is None else Answer(200, found)

    def _edit_comment(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        found = self.comments.get(int(at["id"]))
        if refused := self._refused():
            return refused
        if found is None:
            return Answer(404, objects.error("Not Found"))
        if found["user"]["login"] != self.me:
            return Answer(403, objects.error("Must have admin rights to Repository."))
        if too_long := self._too_long(body):
            return too_long
        found.update(body=body["body"], updated_at=stamp(self.tick()))
        return Answer(200, found)

    def _react_to_comment(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        if int(at["id"]) not in self.comments:
            return Answer(404, objects.error("Not Found"))
        return self._refused() or self._react("comment", int(at["id"]), body["content"])

    def _delete_comment(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        if refused := self._refused():
            return refused
        found = self.comments.pop(int(at["id"]), None)
        return Answer(404, objects.error("Not Found")) if found is None else Answer(204)

    def _list_reactions(self, kind: str, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        rows = [
            row
            for (target, id, content), row in self.reactions.items()
            if (target, id) == (kind, int(at["id"])) and content == query.get("content", content)
        ]
        plural = "issues" if kind == "issue" else "issues/comments"
        return self._page(f"/repos/{self.repository}/{plural}/{at['id']}/reactions", rows, query)

    def _remove_reaction(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        if refused := self._refused():
            return refused
        key = next((key for key, row in self.reactions.items() if row["id"] == int(at["reaction"])), None)
        if key is None:
            return Answer(404, objects.error("Not Found"))
        del self.reactions[key]
        return Answer(204)

    def _react_to_issue(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        return self._refused(int(at["id"])) or self._react("issue", int(at["id"]), body["content"])

    def _react(self, kind: str, id: int, content: str) -> Answer:
        """Answer 201 for a new reaction, 200 for a known one."""
        key = (kind, id, content)
        if key in self.reactions:
            return Answer(200, self.reactions[key])
        self._ids += 1
        self.reactions[key] = objects.reaction(self.url, self._ids, self.me, content, self.tick())
        return Answer(201, self.reactions[key])

    def _list_labels(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        number = int(at["id"])
        return self._page(f"/repos/{self.repository}/issues/{number}/labels", self.issues[number]["labels"], query)

    def _add_labels(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        number = int(at["id"])
        if refused := self._refused(number):
            return refused
        on = self.issues[number]["labels"]
        for name in body["labels"]:
            known = self.labels.setdefault(name, objects.label(self.url, self.repository, name))
            if known not in on:
                on.append(known)
        self.issues[number]["updated_at"] = stamp(self.tick())
        return Answer(200, on)

    def _remove_label(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        number = int(at["id"])
        if refused := self._refused(number):
            return refused
        on = self.issues[number]["labels"]
        if all(label["name"] != at["name"] for label in on):
            return Answer(404, objects.error("Label does not exist"))
        on[:] = [label for label in on if label["name"] != at["name"]]
        return Answer(200, on)

    def _get_label(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        found = self.labels.get(at["name"])
        return Answer(404, objects.error("Not Found")) if found is None else Answer(200, found)

    def _create_label(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        if refused := self._refused():
            return refused
        name = body["name"]
        if name in self.labels:
            return Answer(422, {**objects.error("Validation Failed"), "errors": [{"code": "already_exists"}]})
        self.labels[name] = objects.label(
            self.url, self.repository, name, body.get("color", "ededed"), body.get("description")
        )
        return Answer(201, self.labels[name])

    def _permission(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        """``read`` for every stranger on a public repository; 404 for an account that does not exist."""
        role = self.roles.get(at["username"], "read")
        if role == "missing":
            return Answer(404, objects.error("Not Found"))
        return Answer(200, objects.permission(self.url, at["username"], role))

    def _contents(self, at: re.Match[str], query: dict[str, str], body: Any) -> Answer:
        data = self.files.get(at["path"])
        if data is None:
            return Answer(404, objects.error("Not Found"))
        text = base64.encodebytes(data).decode()
        return Answer(200, objects.file(self.url, self.repository, at["path"], text, len(data)))


def _sorted(rows: list[JSON], query: dict[str, str]) -> list[JSON]:
    key = {"updated": "updated_at", "created": "created_at"}[query.get("sort", "created")]
    return sorted(rows, key=lambda row: str(row[key]), reverse=query.get("direction", "desc") == "desc")


@contextmanager
def quiet() -> Iterator[None]:
    with suppress(BrokenPipeError, ConnectionResetError):
        yield


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print no traceback for a client that was killed: the tests kill clients."""


def _handler(github: FakeGithub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # headers and body in one packet: the kernel holds a second one back for 40 ms (Nagle)

        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = github.serve(self.command, self.path, headers, raw)
            if answer.status == 0:
                self.close_connection = True
                return
            with github._lock:
                data = b"" if answer.status == 204 else json.dumps(answer.body).encode()
            etag = f'W/"{hashlib.sha256(data).hexdigest()}"'
            status = answer.status
            if self.command == "GET" and status == 200 and self.headers.get("If-None-Match") == etag:
                status, data = 304, b""
            with quiet():
                self._send(status, {**answer.headers, "ETag": etag}, data)

        def _send(self, status: int, headers: dict[str, str], data: bytes) -> None:
            self.send_response(status)
            limits = {"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "4999", "X-RateLimit-Reset": "1900000000"}
            kind = {"Content-Type": "application/json; charset=utf-8", "Content-Length": str(len(data))}
            for name, value in {**kind, **limits, **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
