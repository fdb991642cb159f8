"""Leftover containers are looked for in every store, and the stores are asked side by side."""

from __future__ import annotations

import threading

import pytest

from runners.sandbox import owner
from runners.sandbox.containers import engine

WAIT_S = 30.0


def test_no_store_is_asked_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answers only once all are asked. The leftovers of each are removed by its own client, in a fixed order."""
    stores = [("docker",), ("podman",), ("podman", "--root=ours")]
    asked = threading.Barrier(len(stores))
    ended: list[tuple[str, tuple[str, ...], str]] = []

    def query(client: tuple[str, ...], *_words: str) -> str:
        asked.wait(WAIT_S)
        return "\n".join(f"{'-'.join(client)}-{number}" for number in range(2))

    monkeypatch.setattr(engine, "list_stores", lambda: stores)
    monkeypatch.setattr(engine, "query_client", query)
    monkeypatch.setattr(owner, "is_leftover", lambda _name: True)
    monkeypatch.setattr(engine, "remove_forgotten_containers", lambda: [])
    monkeypatch.setattr(engine, "kill_container", lambda client, name: ended.append(("kill", client, name)))
    monkeypatch.setattr(engine, "remove_container", lambda client, name: ended.append(("remove", client, name)))
    removed = engine.remove_leftover_containers()
    assert removed == [f"{'-'.join(client)}-{number}" for client in stores for number in range(2)]
    for client, name in [(client, f"{'-'.join(client)}-{number}") for client in stores for number in range(2)]:
        assert ended.index(("kill", client, name)) < ended.index(("remove", client, name))
    assert len(ended) == 2 * len(removed)
