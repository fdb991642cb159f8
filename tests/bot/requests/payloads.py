"""Events in the shape of GitHub's webhooks (``issues``, ``issue_comment``, ``workflow_dispatch``).

Only the fields that a reader could stumble over are here; the texts are our own.
"""

from __future__ import annotations

from typing import Any

ME = "github-actions[bot]"

REPOSITORY: dict[str, Any] = {
    "id": 186853002,
    "node_id": "MDEwOlJlcG9zaXRvcnkxODY4NTMwMDI=",
    "name": "compiler",
    "full_name": "octo/compiler",
    "private": False,
    "owner": {"login": "octo", "id": 21031067, "type": "Organization", "site_admin": False},
    "default_branch": "main",
    "topics": [],
    "visibility": "public",
}


def user(login: str, type: str = "User") -> dict[str, Any]:
    return {"login": login, "id": 1000 + len(login), "type": type, "site_admin": False, "gravatar_id": ""}


def issue(
    number: int = 7, body: str | None = "It fails.", title: str = "It fails", author: str = "ada"
) -> dict[str, Any]:
    return {
        "id": 444500041,
        "number": number,
        "title": title,
        "user": user(author),
        "labels": [{"id": 1, "name": "bug", "color": "d73a4a", "default": True, "description": None}],
        "state": "open",
        "locked": False,
        "active_lock_reason": None,
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "comments": 0,
        "created_at": "2026-11-20T15:20:18Z",
        "updated_at": "2026-11-20T15:20:19Z",
        "closed_at": None,
        "author_association": "NONE",
        "body": body,
        "reactions": {"total_count": 0, "+1": 0},
        "state_reason": None,
    }


def issue_event(action: str, **of_issue: Any) -> dict[str, Any]:
    return {"action": action, "issue": issue(**of_issue), "repository": REPOSITORY, "sender": user("ada")}


def comment_event(body: str, *, by: str = "ada", id: int = 4242, **of_issue: Any) -> dict[str, Any]:
    return {
        "action": "created",
        "issue": issue(**of_issue),
        "comment": {
            "id": id,
            "user": user(by),
            "created_at": "2026-11-20T16:00:00Z",
            "updated_at": "2026-11-20T16:00:00Z",
            "author_association": "NONE",
            "body": body,
            "performed_via_github_app": None,
        },
        "repository": REPOSITORY,
        "sender": user(by),
    }


def dispatch_event(inputs: dict[str, str]) -> dict[str, Any]:
    return {
        "inputs": inputs,
        "ref": "refs/heads/main",
        "repository": REPOSITORY,
        "sender": user("ada"),
        "workflow": ".github/workflows/repro.yml",
    }
