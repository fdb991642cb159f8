"""GitHub's own OpenAPI description, cut to the calls of the bot, as a check of requests and answers.

The description comes from GitHub's npm package at the time of the test, pinned by hash; no copy is kept in the
repository. The cut lies in the user's cache, since the whole is 29 MB to fetch and 13 MB to parse.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from jsonschema import Draft202012Validator

from tests.bot.forge.npm import Package, cached

PACKAGE = Package(
    name="@octokit/openapi@23.0.2",
    sha256="71a18407dd5e8464f4e0525daf03deabbe65abd9287d6adc7b5d98f516cd0d0c",
    member="package/generated/api.github.com.json",
)
REPO = "/repos/{owner}/{repo}"
PATHS = (
    "/user",
    *(
        f"{REPO}{rest}"
        for rest in (
            "/issues",
            "/issues/comments",
            "/issues/comments/{comment_id}",
            "/issues/comments/{comment_id}/reactions",
            "/issues/comments/{comment_id}/reactions/{reaction_id}",
            "/issues/{issue_number}",
            "/issues/{issue_number}/comments",
            "/issues/{issue_number}/events",
            "/issues/{issue_number}/reactions",
            "/issues/{issue_number}/reactions/{reaction_id}",
            "/issues/{issue_number}/labels",
            "/issues/{issue_number}/labels/{name}",
            "/labels",
            "/labels/{name}",
            "/collaborators/{username}/permission",
            "/contents/{path}",
            "/actions/runs/{run_id}/jobs",
            "/actions/runs/{run_id}/artifacts",
        )
    ),
)


class Contract:
    """Checks requests and answers against the description. Each fault is a sentence."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._validators: dict[str, Draft202012Validator] = {}

    def request(self, method: str, template: str, query: dict[str, str], body: Any) -> list[str]:
        operation = self._operation(method, template)
        if operation is None:
            return [f"{method} {template} is not in the description"]
        named = {self._resolved(one)["name"] for one in operation.get("parameters", ())}
        wrong = [f"{method} {template}: no parameter {name}" for name in query if name not in named]
        described = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        if body is not None and described is None:
            return [*wrong, f"{method} {template} takes no body"]
        if described is not None and body is not None:
            wrong += self._faults(f"request {method} {template}", described, body)
        return wrong

    def response(self, method: str, template: str, status: int, body: Any) -> list[str]:
        operation = self._operation(method, template)
        assert operation is not None
        answers = operation["responses"]
        if str(status) not in answers:
            # Of errors the description names only some: 403 and 410 may come from anywhere.
            return [] if status >= 400 else [f"{method} {template} does not answer {status}"]
        described = self._resolved(answers[str(status)]).get("content", {}).get("application/json", {}).get("schema")
        if described is None or status >= 400:
            return []
        return self._faults(f"answer {status} of {method} {template}", described, body)

    def _operation(self, method: str, template: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._document["paths"].get(template, {}).get(method.lower())
        return found

    def _resolved(self, value: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in value:
            return value
        _, kind, name = value["$ref"].removeprefix("#/").split("/")
        found: dict[str, Any] = self._document["components"][kind][name]
        return found

    @cached_property
    def _components(self) -> Any:
        return _nullable(self._document["components"])

    def _faults(self, what: str, schema: dict[str, Any], value: Any) -> list[str]:
        if what not in self._validators:
            self._validators[what] = Draft202012Validator({**_nullable(schema), "components": self._components})
        return [f"{what}: {error.message[:200]}" for error in self._validators[what].iter_errors(value)]


def _nullable(node: Any) -> Any:
    """Translate OpenAPI 3.0's ``nullable`` to JSON Schema. Examples and formats are left out."""
    if isinstance(node, list):
        return [_nullable(one) for one in node]
    if not isinstance(node, dict):
        return node
    made = {key: _nullable(value) for key, value in node.items() if key not in ("example", "examples", "format")}
    if made.pop("nullable", None) is not True:
        return made
    if not isinstance(made.get("type"), str):
        return {"anyOf": [made, {"type": "null"}]}
    if isinstance(made.get("enum"), list):
        made["enum"] = [*made["enum"], None]
    return {**made, "type": [made["type"], "null"]}


def load() -> Contract:
    """Return the description, from the cache or from the package.

    Raises:
        Unavailable: npm is not installed, or the package cannot be fetched.
    """
    return Contract(cached(PACKAGE, _cut, "\n".join(PATHS)))  # other paths are another cut


def _cut(document: dict[str, Any]) -> dict[str, Any]:
    """Return the paths in use, and every component that they refer to."""
    paths = {path: document["paths"][path] for path in PATHS}
    components: dict[str, dict[str, Any]] = {}
    waiting: list[Any] = [paths]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and reference.startswith("#/components/"):
                _, kind, name = reference.removeprefix("#/").split("/")
                if name not in components.setdefault(kind, {}) and kind != "examples":
                    components[kind][name] = document["components"][kind][name]
                    waiting.append(components[kind][name])
            waiting += [value for key, value in node.items() if key not in ("example", "examples")]
        elif isinstance(node, list):
            waiting += node
    return {"paths": paths, "components": components}
