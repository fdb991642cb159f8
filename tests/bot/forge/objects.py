"""JSON objects as GitHub's API answers them, complete enough for its own description. The texts are our own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zlib import crc32

JSON = dict[str, Any]
WEB = "https://github.com"


def stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def node(kind: str, id: int) -> str:
    return f"{kind}_{id:x}"


def user(api: str, login: str, *, type: str | None = None) -> JSON:
    id, base = crc32(login.encode()), f"{api}/users/{login}"
    names = ("followers", "following", "gists", "starred", "subscriptions", "organizations", "repos", "events")
    return {
        "login": login,
        "id": id,
        "node_id": node("U", id),
        "avatar_url": f"{WEB}/avatars/{id}",
        "gravatar_id": "",
        "url": base,
        "html_url": f"{WEB}/{login}",
        **{f"{name}_url": f"{base}/{name}" for name in names},
        "received_events_url": f"{base}/received_events",
        "type": type or ("Bot" if login.endswith("[bot]") else "User"),
        "site_admin": False,
    }


def account(api: str, login: str) -> JSON:
    """Return a user with the additional fields of ``GET /user``."""
    return {
        **user(api, login),
        **dict.fromkeys(("bio", "blog", "company", "email", "hireable", "location", "name")),
        "followers": 0,
        "following": 0,
        "public_gists": 0,
        "public_repos": 1,
        "created_at": "2020-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
    }


def repository(api: str, full_name: str) -> JSON:
    """Return the short form of a repository, as in events and lists."""
    owner, _, name = full_name.partition("/")
    return {
        "id": crc32(full_name.encode()),
        "node_id": node("R", crc32(full_name.encode())),
        "name": name,
        "full_name": full_name,
        "private": False,
        "owner": user(api, owner, type="Organization"),
        "html_url": f"{WEB}/{full_name}",
        "description": None,
        "fork": False,
        "url": f"{api}/repos/{full_name}",
        "default_branch": "main",
    }


def label(api: str, repository: str, name: str, colour: str = "ededed", description: str | None = None) -> JSON:
    id = crc32(name.encode())
    return {
        "id": id,
        "node_id": node("L", id),
        "url": f"{api}/repos/{repository}/labels/{name}",
        "name": name,
        "description": description,
        "color": colour,
        "default": False,
    }


def reactions(url: str) -> JSON:
    kinds = ("+1", "-1", "laugh", "confused", "heart", "hooray", "eyes", "rocket")
    return {"url": f"{url}/reactions", "total_count": 0, **dict.fromkeys(kinds, 0)}


def issue(api: str, repository: str, number: int, *, title: str, body: str | None, author: str, at: datetime) -> JSON:
    url = f"{api}/repos/{repository}/issues/{number}"
    return {
        "id": 10_000 + number,
        "node_id": node("I", number),
        "url": url,
        "repository_url": f"{api}/repos/{repository}",
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "html_url": f"{WEB}/{repository}/issues/{number}",
        "number": number,
        "state": "open",
        "state_reason": None,
        "title": title,
        "body": body,
        "user": user(api, author),
        "labels": [],
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "locked": False,
        "active_lock_reason": None,
        "comments": 0,
        "closed_at": None,
        "created_at": stamp(at),
        "updated_at": stamp(at),
        "author_association": "NONE",
        "reactions": reactions(url),
        "performed_via_github_app": None,
    }


def issue_event(api: str, repository: str, id: int, name: str, *, commit: str | None, at: datetime) -> JSON:
    return {
        "id": id,
        "node_id": node("CE", id),
        "url": f"{api}/repos/{repository}/issues/events/{id}",
        "actor": user(api, "wil"),
        "event": name,
        "commit_id": commit,
        "commit_url": f"{api}/repos/{repository}/commits/{commit}" if commit else None,
        "created_at": stamp(at),
        "performed_via_github_app": None,
    }


def comment(api: str, repository: str, id: int, number: int, *, body: str, author: str, at: datetime) -> JSON:
    url = f"{api}/repos/{repository}/issues/comments/{id}"
    return {
        "id": id,
        "node_id": node("IC", id),
        "url": url,
        "html_url": f"{WEB}/{repository}/issues/{number}#issuecomment-{id}",
        "issue_url": f"{api}/repos/{repository}/issues/{number}",
        "body": body,
        "user": user(api, author),
        "created_at": stamp(at),
        "updated_at": stamp(at),
        "author_association": "NONE",
        "reactions": reactions(url),
        "performed_via_github_app": None,
    }


def reaction(api: str, id: int, login: str, content: str, at: datetime) -> JSON:
    return {
        "id": id,
        "node_id": node("REA", id),
        "user": user(api, login),
        "content": content,
        "created_at": stamp(at),
    }


def permission(api: str, login: str, role: str) -> JSON:
    """Return a permission. ``role_name`` is the role; ``permission`` knows only the four old words."""
    old = {"triage": "read", "maintain": "write"}.get(role, role)
    return {"permission": old, "role_name": role, "user": {**user(api, login), "role_name": role}}


def file(api: str, repository: str, path: str, data: str, size: int) -> JSON:
    """Return a file; ``data`` is base64."""
    url = f"{api}/repos/{repository}/contents/{path}"
    return {
        "type": "file",
        "encoding": "base64",
        "size": size,
        "name": path.rpartition("/")[2],
        "path": path,
        "content": data,
        "sha": f"{crc32(data.encode()):040x}",
        "url": url,
        "git_url": f"{api}/repos/{repository}/git/blobs/0",
        "html_url": f"{WEB}/{repository}/blob/main/{path}",
        "download_url": f"{WEB}/{repository}/raw/main/{path}",
        "_links": {"git": f"{api}/repos/{repository}/git/blobs/0", "self": url, "html": f"{WEB}/{repository}"},
    }


def workflow_job(api: str, repository: str, run: int, name: str, begin: datetime, steps: list[JSON]) -> JSON:
    """Return a finished job. ``steps`` come from `workflow_step`."""
    id, base = crc32(f"{run}/{name}".encode()), f"{api}/repos/{repository}"
    return {
        "id": id,
        "run_id": run,
        "run_url": f"{base}/actions/runs/{run}",
        "node_id": node("CR", id),
        "head_sha": "1" * 40,
        "head_branch": "main",
        "url": f"{base}/actions/jobs/{id}",
        "html_url": f"{WEB}/{repository}/actions/runs/{run}/job/{id}",
        "status": "completed",
        "conclusion": "success",
        "created_at": stamp(begin),
        "started_at": stamp(begin),
        "completed_at": steps[-1]["completed_at"] if steps else stamp(begin),
        "name": name,
        "steps": steps,
        "check_run_url": f"{base}/check-runs/{id}",
        "labels": ["ubuntu-24.04"],
        "runner_id": 1,
        "runner_name": "hosted 1",
        "runner_group_id": 1,
        "runner_group_name": "hosted",
        "workflow_name": "repro",
    }


def workflow_step(name: str, number: int, conclusion: str, begin: datetime, end: datetime) -> JSON:
    return {
        "name": name,
        "status": "completed",
        "conclusion": conclusion,
        "number": number,
        "started_at": stamp(begin),
        "completed_at": stamp(end),
    }


def artifact(api: str, repository: str, name: str, at: datetime) -> JSON:
    id = crc32(f"{name}/{stamp(at)}".encode())
    url = f"{api}/repos/{repository}/actions/artifacts/{id}"
    return {
        "id": id,
        "node_id": node("A", id),
        "name": name,
        "size_in_bytes": 100,
        "url": url,
        "archive_download_url": f"{url}/zip",
        "expired": False,
        "created_at": stamp(at),
        "expires_at": stamp(at),
        "updated_at": stamp(at),
    }


def error(message: str) -> JSON:
    return {"message": message, "documentation_url": "https://docs.github.com/rest", "status": ""}
